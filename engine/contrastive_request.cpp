#include "engine/contrastive_request.h"

#include <algorithm>

#include <fmt/format.h>

namespace hearth {

Result<SamplingOptions> contrastive_sampling(const GenerationRequest& request,
                                             const std::optional<ContrastOptions>& contrast) {
  const ContrastiveSearchOptions& search = request.contrastive_search;
  if (!(search.alpha > 0 && search.alpha <= 1))
    return invalid("penalty_alpha of contrastive search must be greater than 0 and at most 1");
  if (search.top_k < 2 || search.top_k > kMaxTopLogprobs)
    return invalid(fmt::format("contrastive search needs a top_k between 2 and {}, not {}",
                               kMaxTopLogprobs, search.top_k));
  const auto conflict = [](const char* other) {
    return invalid(fmt::format("contrastive search and {} cannot be combined", other));
  };
  if (request.beam.searches()) return conflict("beam search");
  if (request.guidance.guides()) return conflict("guidance");
  if (request.grammar != nullptr) return conflict("a grammar");
  if (!request.banned_strings.empty()) return conflict("banned strings");
  if (request.prompt_logprobs || !request.generate || request.pooling != Pooling::kNone)
    return conflict("log-probabilities or embeddings of the prompt");
  if (contrast ? request.contrast_beta.value_or(contrast->beta) != 0
               : request.contrast_beta.value_or(0) != 0 || request.contrast_alpha.has_value())
    return invalid(fmt::format("contrastive search and contrastive decoding cannot be combined; {}",
                               contrast ? "set cd_beta to 0" : "leave out cd_alpha and cd_beta"));
  // Filters have no effect at temperature 0.
  SamplingOptions sampling = request.sampling;
  sampling.temperature = 0;
  sampling.top_logprobs = std::max(search.top_k, request.sampling.top_logprobs);
  return sampling;
}

uint32_t most_candidates(const GenerationRequest& request) {
  return request.contrastive_search.searches() ? request.contrastive_search.top_k : 0;
}

}  // namespace hearth
