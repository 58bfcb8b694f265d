// qwen3moe: like qwen3, with a mixture of experts instead of the MLP.
#include "engine/model/config_reader.h"
#include "engine/models/common.h"
#include "engine/models/experts.h"

namespace hearth {
namespace {

class Qwen3Moe final : public Architecture {
 public:
  std::string_view name() const override { return "qwen3moe"; }

  Result<ModelConfig> read_config(const ModelFile& file) const override {
    ConfigReader reader(file, name());
    ModelConfig config = reader.common();
    config.head_norms = true;
    reader.need_experts(config);
    return reader.finish(config);
  }

  WeightTable weight_table(const ModelConfig& config) const override {
    WeightTable table;
    add_model_weights(table, config);
    for (uint32_t layer = 0; layer < config.layers; ++layer) {
      add_attention_weights(table, config, layer);
      add_head_norms(table, config, layer);
      table.vector(WeightRole::kMlpNorm, layer,
                   {{layer_tensor(layer, "ffn_norm.weight"), config.width}});
      add_expert_weights(table, config, layer);
    }
    return table;
  }

  void emit_layer(Builder& builder) const override { emit_experts_layer(builder); }
};

}  // namespace

const Architecture& qwen3moe_architecture() {
  static const Qwen3Moe architecture;
  return architecture;
}

}  // namespace hearth
