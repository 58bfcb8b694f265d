// A slot's history as penalties see it: the tokens of a request, each once, with a count.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "params/sampling.h"

namespace hearth {

// Which tokens presence and frequency penalties count. Repetition always sees all of them.
enum class PenaltyScope {
  kAll,        // prompt and generated, as llama.cpp does with a window of the whole context
  kGenerated,  // the prompt's count as nought, as OpenAI's and vLLM's users expect
};

// The entries for a request that begins, or comes back: what the host writes into the slot. From
// then on sample_pick appends. A slot may be too small for all of them, so generated tokens come
// first, and those of the prompt are left out where they change nothing. Pure.
std::vector<params::TokenCount> count_tokens(std::span<const uint32_t> prompt,
                                             std::span<const uint32_t> generated,
                                             PenaltyScope scope, float repetition_penalty);

}  // namespace hearth
