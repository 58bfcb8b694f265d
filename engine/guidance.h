// Classifier-free guidance with a negative prompt. The scheduler runs a shadow of the request,
// which has the negative prompt and the request's generated tokens; each step mixes the logits of
// the two before the request's token is sampled. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/generation.h"
#include "params/sampling.h"
#include "runtime/result.h"

namespace hearth {

// Tokens of the negative prompt; 0 without guidance.
size_t negative_tokens(const GenerationRequest& request);

// The longest sequence of a request, such that `blocks` hold it. With guidance they hold its shadow
// as well.
uint64_t longest_in_blocks(const GenerationRequest& request, uint32_t blocks);

// Checks a request's guidance, and fills in what it leaves out; without a scale it has no negative
// prompt. An error says which other settings do not go together with it. `contrast` are the
// engine's settings of contrastive decoding.
Status complete_guidance(GenerationRequest& request,
                         const std::optional<ContrastOptions>& contrast);

// Turns the row into one that is mixed with the shadow's. The batch says which row that is.
Status guide(const GuidanceOptions& guidance, params::SamplingRow& row);

}  // namespace hearth
