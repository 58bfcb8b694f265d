// llama: Llama 2 and 3.x, Mistral with its sliding window, Mixtral with its experts, SmolLM,
// TinyLlama. Optional biases, tied embeddings, llama-3's, linear and YaRN rope scaling.
#include "engine/model/config_reader.h"
#include "engine/models/common.h"
#include "engine/models/experts.h"

namespace hearth {
namespace {

class Llama final : public Architecture {
 public:
  std::string_view name() const override { return "llama"; }

  Result<ModelConfig> read_config(const ModelFile& file) const override {
    ConfigReader reader(file, name());
    ModelConfig config = reader.common();
    // GGUF converters permute q and k heads so that rope pairs are neighbours.
    config.rope_pairs = file.kind() == FileKind::kGguf ? RopePairs::kAdjacent : RopePairs::kHalves;
    reader.experts(config);
    return reader.finish(config);
  }

  WeightTable weight_table(const ModelConfig& config) const override {
    WeightTable table;
    add_model_weights(table, config);
    table.known("rope_freqs.weight");
    for (uint32_t layer = 0; layer < config.layers; ++layer) {
      add_attention_weights(table, config, layer);
      add_optional_attention_biases(table, config, layer);
      if (config.experts == 0) {
        add_mlp_weights(table, config, layer);
        continue;
      }
      table.vector(WeightRole::kMlpNorm, layer,
                   {{layer_tensor(layer, "ffn_norm.weight"), config.width}});
      add_expert_weights(table, config, layer);
    }
    return table;
  }

  void emit_layer(Builder& builder) const override {
    if (builder.config().experts == 0)
      emit_pre_norm_layer(builder);
    else
      emit_experts_layer(builder);
  }
};

}  // namespace

const Architecture& llama_architecture() {
  static const Llama architecture;
  return architecture;
}

}  // namespace hearth
