#include "engine/guidance.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/sampling/sampler.h"
#include "engine/scheduling/batch_plan.h"

namespace hearth {

size_t negative_tokens(const GenerationRequest& request) {
  if (!request.guidance.guides()) return 0;
  return std::max<size_t>(request.guidance.negative_prompt.size(), 1);
}

uint64_t longest_in_blocks(const GenerationRequest& request, uint32_t blocks) {
  const uint64_t all = uint64_t{blocks} * kTokensPerBlock;
  if (!request.guidance.guides())
    return uint64_t{blocks / std::max(request.beam.beams, 1u)} * kTokensPerBlock;
  const uint64_t own = request.prompt.size(), negative = negative_tokens(request);
  if (all < own + negative) return 0;
  // The last token is never computed. Each of the two may leave a block partly empty.
  const auto taken = [](uint64_t tokens) { return blocks_for(tokens - 1); };
  uint64_t generated = (all - own - negative) / 2 + 1;
  while (generated > 1 && taken(own + generated) + taken(negative + generated) > blocks)
    --generated;
  return std::max(own, negative) + generated;
}

Status complete_guidance(GenerationRequest& request,
                         const std::optional<ContrastOptions>& contrast) {
  GuidanceOptions& guidance = request.guidance;
  if (!guidance.guides() || request.prompt.empty()) {
    guidance.negative_prompt.clear();
    return {};
  }
  if (!(guidance.scale >= 0 && guidance.scale <= 100))
    return invalid("the guidance scale must be between 0 and 100");
  if (!request.generate || request.pooling != Pooling::kNone)
    return invalid("guidance needs a request that generates text");
  if (request.prompt_logprobs)
    return invalid("guidance does not report the prompt's log-probabilities");
  if (request.beam.searches()) return invalid("guidance and beam search cannot be combined");
  const bool contrasts =
      contrast ? request.contrast_beta.value_or(contrast->beta) != 0
               : request.contrast_beta.value_or(0) != 0 || request.contrast_alpha.has_value();
  if (contrasts)
    return invalid(fmt::format("guidance and contrastive decoding cannot be combined; {}",
                               contrast ? "set cd_beta to 0" : "leave out cd_alpha and cd_beta"));
  // As transformers does.
  if (guidance.negative_prompt.empty()) guidance.negative_prompt = {request.prompt.back()};
  return {};
}

Status guide(const GuidanceOptions& guidance, params::SamplingRow& row) {
  return mix_logits(row, {.own_weight = guidance.scale, .other_weight = 1 - guidance.scale});
}

}  // namespace hearth
