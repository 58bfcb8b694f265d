// The samplers that sample_stages runs, from a request's options to the kernel's parameters.
// README.md in this folder defines them. Pure.
#pragma once

#include "engine/sampling_options.h"
#include "params/sampling.h"
#include "runtime/result.h"

namespace hearth {

// Whether the settings of these samplers, of DRY and of mirostat are in range. An error says which
// is not, in words for the client.
Status check_stages(const SamplingOptions& options);

// The options with the samplers turned off that their order does not list.
SamplingOptions only_listed(SamplingOptions options);

// Whether a row with these options needs sample_stages: it has a sampler that sample_pick lacks, or
// another order. A greedy row does not. REQUIRES: only_listed() has been applied.
bool uses_stages(const SamplingOptions& options);

bool uses_mirostat(const SamplingOptions& options);
bool uses_dry(const SamplingOptions& options);

// The same as the kernel reads it, with mirostat's first value. REQUIRES: uses_stages().
params::SamplingStages make_stages(const SamplingOptions& options);

}  // namespace hearth
