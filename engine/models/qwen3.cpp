// qwen3: like llama, but rope pairs halves, and q and k heads have norms.
#include "engine/model/config_reader.h"
#include "engine/models/common.h"

namespace hearth {
namespace {

class Qwen3 final : public Architecture {
 public:
  std::string_view name() const override { return "qwen3"; }

  Result<ModelConfig> read_config(const ModelFile& file) const override {
    ConfigReader reader(file, name());
    ModelConfig config = reader.common();
    config.head_norms = true;
    return reader.finish(config);
  }

  WeightTable weight_table(const ModelConfig& config) const override {
    WeightTable table;
    add_model_weights(table, config);
    for (uint32_t layer = 0; layer < config.layers; ++layer) {
      add_attention_weights(table, config, layer);
      add_head_norms(table, config, layer);
      add_mlp_weights(table, config, layer);
    }
    return table;
  }

  void emit_layer(Builder& builder) const override { emit_pre_norm_layer(builder); }
};

}  // namespace

const Architecture& qwen3_architecture() {
  static const Qwen3 architecture;
  return architecture;
}

}  // namespace hearth
