// The structs that sampling kernels read and write in device buffers. engine/sampling/README.md says how
// each parameter affects the chosen token.
#ifndef HEARTH_PARAMS_SAMPLING_H
#define HEARTH_PARAMS_SAMPLING_H
#include "common/interop.h"

HEARTH_CONSTANT(kSamplingActive, 1u)  // the row is sampled; without it the row is skipped
HEARTH_CONSTANT(kSamplingAppend, 2u)  // the chosen token is counted in the row's history
HEARTH_CONSTANT(kSamplingGreedy, 4u)  // the token with the largest logit, no draw

// One row's parameters. engine/sampling/sampler.h makes them from what a request asks for.
HEARTH_STRUCT(SamplingRow)
  uint flags;
  uint id_index;              // ids[id_index] gets the chosen token
  float inverse_temperature;  // of the draw
  uint top_k;                 // 0: off
  float top_p;                // 1: off
  float log_min_p;            // ln(min_p); -infinity: off
  float repetition;           // 1: off
  float presence;             // 0: off
  float frequency;            // 0: off
  uint seed_low;              // the draw is a function of the seed and the counter alone
  uint seed_high;
  uint counter;
  uint bias_offset;   // the row's first entry in the array of all biases
  uint bias_count;    // its entries; a token at most once
  uint history_slot;  // the history that penalties use, or kNoHistory
  uint top_logprobs;  // how many of the most probable tokens to report, 0 to kMaxTopLogprobs
HEARTH_STRUCT_END

HEARTH_CONSTANT(kNoHistory, 0xffffffffu)
HEARTH_CONSTANT(kMaxTopLogprobs, 20u)
HEARTH_CONSTANT(kNoToken, 0xffffffffu)  // the id of an unused TokenLogprob

HEARTH_STRUCT(TokenBias)
  uint token;
  float bias;  // added to the logit; -infinity bans the token
HEARTH_STRUCT_END

// A token of a slot's history, at most once in a slot.
HEARTH_STRUCT(TokenCount)
  uint token;
  uint count;  // occurrences, for presence and frequency penalties; repetition applies to every entry
HEARTH_STRUCT_END

HEARTH_STRUCT(SamplingResult)
  uint id;
  float logprob;
  uint kept;  // number of tokens left after the filters
HEARTH_STRUCT_END

HEARTH_STRUCT(TokenLogprob)
  uint id;
  float logprob;
HEARTH_STRUCT_END

// What sample_scan finds in a chunk, the part of a row that one workgroup reads.
HEARTH_STRUCT(SamplingChunk)
  uint best_key;    // of the largest logit (common/sampling_key.glsl)
  uint best_id;     // the lowest token that has it
  uint lowest_key;  // of the smallest logit that is not -infinity
  uint sum_high;    // of exp(logit - largest of the chunk), in fixed point
  uint sum_low;
HEARTH_STRUCT_END

// A quad is four logits, and a segment kSegmentQuads quads: what one lane of sample_scan reads at a
// time. The quads of a segment are as far apart as the kernel has lanes.
HEARTH_CONSTANT(kSegmentQuads, 8u)

#endif
