// How a user of the command line wants text to be found, beyond the settings of sampling
// (sampling_choices.h). Plain data.
#pragma once

#include <cstdint>
#include <string>

#include "engine/generation.h"
#include "engine/text/tokenizer.h"

namespace hearth {

struct DecodingChoices {
  float penalty_alpha = 0;   // of contrastive search; 0: off. Its candidates are --top-k
  float guidance_scale = 1;  // 1: off
  std::string negative_prompt;

  // Sequences that one request runs at once.
  uint32_t sequences() const { return guidance_scale != 1 ? 2 : 1; }
  // Candidates per step, if --top-k is this.
  uint32_t candidates(uint32_t top_k) const { return penalty_alpha > 0 ? top_k : 0; }
  // REQUIRES: the request's settings of sampling are set. A negative prompt is plain text, as a
  // prompt without a chat template is.
  void apply(const Tokenizer& tokenizer, GenerationRequest& request) const {
    if (penalty_alpha > 0)
      request.contrastive_search = {.alpha = penalty_alpha, .top_k = request.sampling.top_k};
    request.guidance.scale = guidance_scale;
    if (guidance_scale != 1 && !negative_prompt.empty())
      request.guidance.negative_prompt = tokenizer.encode(negative_prompt);
  }
};

}  // namespace hearth
