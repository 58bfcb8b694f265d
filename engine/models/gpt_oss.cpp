// gpt-oss: experts with biases and a limited activation, attention with sinks and biases, a window
// on every other layer, YaRN.
#include "engine/model/config_reader.h"
#include "engine/models/common.h"
#include "engine/models/experts.h"

namespace hearth {
namespace {

class GptOss final : public Architecture {
 public:
  std::string_view name() const override { return "gpt-oss"; }

  Result<ModelConfig> read_config(const ModelFile& file) const override {
    ConfigReader reader(file, name());
    ModelConfig config = reader.common();
    config.attention_sinks = true;
    config.limited_activation = true;
    reader.need_experts(config);
    // GGUF files say neither which layers have the window nor how YaRN's ramp is rounded.
    if (file.kind() == FileKind::kGguf) {
      config.rope.info.truncate = reader.flag("rope.scaling.yarn_truncate", false);
      if (config.window > 0 && reader.window_pattern(config.layers).empty())
        for (uint32_t layer = 1; layer < config.layers; layer += 2) config.windowed[layer] = false;
    }
    return reader.finish(config);
  }

  WeightTable weight_table(const ModelConfig& config) const override {
    WeightTable table;
    add_model_weights(table, config);
    for (uint32_t layer = 0; layer < config.layers; ++layer) {
      add_attention_weights(table, config, layer);
      add_optional_attention_biases(table, config, layer);
      table.vector(WeightRole::kSinks, layer,
                   {{layer_tensor(layer, "attn_sinks.weight"), config.heads}});
      table.vector(WeightRole::kMlpNorm, layer,
                   {{layer_tensor(layer, "post_attention_norm.weight"), config.width}});
      add_expert_weights(table, config, layer);
    }
    return table;
  }

  void emit_layer(Builder& builder) const override { emit_experts_layer(builder); }
};

}  // namespace

const Architecture& gpt_oss_architecture() {
  static const GptOss architecture;
  return architecture;
}

}  // namespace hearth
