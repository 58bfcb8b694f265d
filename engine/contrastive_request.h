// What a request with contrastive search asks the engine for. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/generation.h"
#include "runtime/result.h"

namespace hearth {

// How a step reports what the search needs: greedy, with the most probable tokens; the request's
// penalties apply. An error says which settings are wrong or do not go together with the search.
// `contrast` are the engine's settings of contrastive decoding.
Result<SamplingOptions> contrastive_sampling(const GenerationRequest& request,
                                             const std::optional<ContrastOptions>& contrast);

// The most candidates per token of such a request; 0 for others. Its sequence needs room for as
// many tokens beyond the longest text.
uint32_t most_candidates(const GenerationRequest& request);

}  // namespace hearth
