// What gemma2 and gemma3 share.
#pragma once

#include <cmath>

#include "engine/model/config_reader.h"
#include "engine/weights/model_file.h"

namespace hearth {

inline void set_gemma_basics(ModelConfig& config, const ModelFile& file) {
  // Hugging Face stores w where the norm multiplies by 1 + w; GGUF stores the sum.
  if (file.kind() == FileKind::kHuggingFace) config.norm_offset = 1;
  config.embed_scale = std::sqrt(static_cast<float>(config.width));
  config.activation = MlpActivation::kGeluTanh;
}

// Defaults for GGUF files: the window, which all but every `period`-th layer have. For a Hugging
// Face folder the translation has applied the defaults, so an absent key means no window.
inline void set_default_windows(ModelConfig& config, ConfigReader& reader, const ModelFile& file,
                                uint32_t window, uint32_t period) {
  if (file.kind() == FileKind::kHuggingFace) return;
  config.window = reader.count("attention.sliding_window", window);
  if (!reader.window_pattern(config.layers).empty()) return;
  config.windowed.clear();
  for (uint32_t layer = 0; layer < config.layers; ++layer)
    config.windowed.push_back((layer + 1) % period != 0);
}

// The soft caps. `attention` and `logits` are the defaults for GGUF files.
inline void set_soft_caps(ModelConfig& config, ConfigReader& reader, const ModelFile& file,
                          double attention, double logits) {
  const bool defaults_applied = file.kind() == FileKind::kHuggingFace;
  config.attention_soft_cap =
      static_cast<float>(reader.number("attn_logit_softcapping", defaults_applied ? 0 : attention));
  config.logit_soft_cap =
      static_cast<float>(reader.number("final_logit_softcapping", defaults_applied ? 0 : logits));
}

// The factor on scores: 1 / sqrt(head size). The largest model of a family, recognized by its
// number of layers, uses width / heads instead of the head size.
inline void set_query_scale(ModelConfig& config, ConfigReader& reader, uint32_t largest_layers) {
  if (config.heads == 0 || config.head_size == 0) return;
  const uint32_t size =
      config.layers == largest_layers ? config.width / config.heads : config.head_size;
  config.attention_scale = static_cast<float>(
      reader.number("attention.scale", 1.0 / std::sqrt(static_cast<double>(size))));
}

}  // namespace hearth
