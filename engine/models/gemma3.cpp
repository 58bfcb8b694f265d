// gemma3 (text): five layers with a window and a rope of their own for each layer without; norms of
// q and k heads, and before and after attention and MLP.
#include "engine/model/config_reader.h"
#include "engine/models/common.h"
#include "engine/models/gemma.h"

namespace hearth {
namespace {

class Gemma3 final : public Architecture {
 public:
  std::string_view name() const override { return "gemma3"; }

  Result<ModelConfig> read_config(const ModelFile& file) const override {
    ConfigReader reader(file, name());
    ModelConfig config = reader.common();
    set_gemma_basics(config, file);
    config.head_norms = true;
    set_soft_caps(config, reader, file, 0, 0);
    set_default_windows(config, reader, file, 1024, 6);
    // Layers with a window keep the rope of short contexts.
    RopeConfig local;
    local.info.base = reader.number("rope.freq_base_swa", 10000.0);
    local.info.model_context = config.rope.info.model_context;
    config.window_rope.push_back(local);
    set_query_scale(config, reader, 62);
    return reader.finish(config);
  }

  WeightTable weight_table(const ModelConfig& config) const override {
    WeightTable table;
    add_model_weights(table, config);
    for (uint32_t layer = 0; layer < config.layers; ++layer) {
      add_attention_weights(table, config, layer);
      add_head_norms(table, config, layer);
      add_mlp_weights(table, config, layer);
      add_post_norms(table, config, layer);
    }
    return table;
  }

  void emit_layer(Builder& builder) const override { emit_sandwich_norm_layer(builder); }
};

}  // namespace

const Architecture& gemma3_architecture() {
  static const Gemma3 architecture;
  return architecture;
}

}  // namespace hearth
