// gemma2: soft caps on attention and logits, a window in every other layer, norms before and after
// attention and MLP.
#include "engine/model/config_reader.h"
#include "engine/models/common.h"
#include "engine/models/gemma.h"

namespace hearth {
namespace {

class Gemma2 final : public Architecture {
 public:
  std::string_view name() const override { return "gemma2"; }

  Result<ModelConfig> read_config(const ModelFile& file) const override {
    ConfigReader reader(file, name());
    ModelConfig config = reader.common();
    set_gemma_basics(config, file);
    set_soft_caps(config, reader, file, 50, 30);
    set_default_windows(config, reader, file, 4096, 2);
    set_query_scale(config, reader, 46);
    return reader.finish(config);
  }

  WeightTable weight_table(const ModelConfig& config) const override {
    WeightTable table;
    add_model_weights(table, config);
    for (uint32_t layer = 0; layer < config.layers; ++layer) {
      add_attention_weights(table, config, layer);
      add_mlp_weights(table, config, layer);
      add_post_norms(table, config, layer);
    }
    return table;
  }

  void emit_layer(Builder& builder) const override { emit_sandwich_norm_layer(builder); }
};

}  // namespace

const Architecture& gemma2_architecture() {
  static const Gemma2 architecture;
  return architecture;
}

}  // namespace hearth
