// qwen2: Qwen 2 and 2.5. Like llama, but rope pairs halves, and q, k and v have biases.
#include "engine/model/config_reader.h"
#include "engine/models/common.h"

namespace hearth {
namespace {

class Qwen2 final : public Architecture {
 public:
  std::string_view name() const override { return "qwen2"; }

  Result<ModelConfig> read_config(const ModelFile& file) const override {
    ConfigReader reader(file, name());
    return reader.finish(reader.common());
  }

  WeightTable weight_table(const ModelConfig& config) const override {
    WeightTable table;
    add_model_weights(table, config);
    for (uint32_t layer = 0; layer < config.layers; ++layer) {
      add_attention_weights(table, config, layer);
      add_optional_attention_biases(table, config, layer);
      add_mlp_weights(table, config, layer);
    }
    return table;
  }

  void emit_layer(Builder& builder) const override { emit_pre_norm_layer(builder); }
};

}  // namespace

const Architecture& qwen2_architecture() {
  static const Qwen2 architecture;
  return architecture;
}

}  // namespace hearth
