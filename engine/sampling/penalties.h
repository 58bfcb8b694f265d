// A slot's history as penalties see it: the tokens of a request, each once, with a count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "params/sampling.h"

namespace hearth {

// The entries for a request that begins, or comes back: what the host writes into the slot. From
// then on sample_pick appends, to the same effect: who comes back samples as if it had stayed.
// Repetition sees all tokens; presence and frequency penalties count those that were generated, as
// users of OpenAI's and vLLM's servers expect. There are at most `room` entries; the prompt has
// half of them at most, for its last tokens, and none where it changes nothing. Pure.
std::vector<params::TokenCount> count_tokens(std::span<const uint32_t> prompt,
                                             std::span<const uint32_t> generated,
                                             float repetition_penalty, size_t room);

}  // namespace hearth
