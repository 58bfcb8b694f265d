// A slot's history, which penalties read: the distinct tokens of a request, each with a count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "params/sampling.h"

namespace hearth {

// The entries that the host writes into the slot when a request starts, or resumes after a
// preemption. From then on sample_pick appends to the same effect, so that a preempted request
// samples as if it had never been preempted. The repetition penalty applies to all tokens; presence
// and frequency penalties only to generated ones, as users of OpenAI's and vLLM's servers expect.
// At most `room` entries, of which at most half are for the prompt: its last tokens, or none if
// there is no repetition penalty. Pure.
std::vector<params::TokenCount> count_tokens(std::span<const uint32_t> prompt,
                                             std::span<const uint32_t> generated,
                                             float repetition_penalty, size_t room);

}  // namespace hearth
