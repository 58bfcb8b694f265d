// A slot's history as penalties see it: the tokens of a request, each once, with a count.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "params/sampling.h"

namespace hearth {

// The entries for a request that begins, or comes back: what the host writes into the slot. From
// then on sample_pick appends. Repetition sees all tokens; presence and frequency penalties count
// those that were generated, as users of OpenAI's and vLLM's servers expect. A slot may be too
// small for all of them, so generated tokens come first, and those of the prompt are left out where
// they change nothing. Pure.
std::vector<params::TokenCount> count_tokens(std::span<const uint32_t> prompt,
                                             std::span<const uint32_t> generated,
                                             float repetition_penalty);

}  // namespace hearth
