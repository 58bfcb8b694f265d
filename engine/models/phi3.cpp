// phi3: q, k and v in one tensor, gate and up in one tensor, long-rope, partial rope.
#include "engine/model/config_reader.h"
#include "engine/models/common.h"

namespace hearth {
namespace {

class Phi3 final : public Architecture {
 public:
  std::string_view name() const override { return "phi3"; }

  Result<ModelConfig> read_config(const ModelFile& file) const override {
    ConfigReader reader(file, name());
    return reader.finish(reader.common());
  }

  WeightTable weight_table(const ModelConfig& config) const override {
    WeightTable table;
    add_model_weights(table, config);
    table.known("rope_factors_long.weight");
    table.known("rope_factors_short.weight");
    for (uint32_t layer = 0; layer < config.layers; ++layer) {
      table.vector(WeightRole::kAttentionNorm, layer,
                   {{layer_tensor(layer, "attn_norm.weight"), config.width}});
      table.matrix(
          WeightRole::kQkv, layer,
          {{layer_tensor(layer, "attn_qkv.weight"), config.q_width() + 2 * config.kv_width()}},
          config.width);
      table.matrix(WeightRole::kAttentionOut, layer,
                   {{layer_tensor(layer, "attn_output.weight"), config.width}}, config.q_width());
      table.vector(WeightRole::kMlpNorm, layer,
                   {{layer_tensor(layer, "ffn_norm.weight"), config.width}});
      table.matrix(WeightRole::kGateUp, layer,
                   {{layer_tensor(layer, "ffn_up.weight"), 2 * config.mlp_width}}, config.width);
      table.matrix(WeightRole::kDown, layer,
                   {{layer_tensor(layer, "ffn_down.weight"), config.width}}, config.mlp_width);
    }
    return table;
  }

  void emit_layer(Builder& builder) const override { emit_pre_norm_layer(builder); }
};

}  // namespace

const Architecture& phi3_architecture() {
  static const Phi3 architecture;
  return architecture;
}

}  // namespace hearth
