// The structs that sampling kernels read and write in device buffers. engine/sampling/README.md says how
// each parameter affects the chosen token.
#ifndef HEARTH_PARAMS_SAMPLING_H
#define HEARTH_PARAMS_SAMPLING_H
#include "common/interop.h"
#include "params/step.h"

HEARTH_CONSTANT(kSamplingActive, 1u)  // the row is sampled; without it the row is skipped
HEARTH_CONSTANT(kSamplingAppend, 2u)  // the chosen token is counted in the row's history
HEARTH_CONSTANT(kSamplingGreedy, 4u)  // the token with the largest logit, no draw
HEARTH_CONSTANT(kSamplingMask, 8u)    // only tokens of the row's mask may be sampled
HEARTH_CONSTANT(kSamplingMix, 16u)    // the row's logits are first mixed with another row's
HEARTH_CONSTANT(kSamplingDry, 32u)    // the row has DRY penalties
// sample_stages chooses the row's token and, with the second flag, counts it in the row's history. The
// other kernels process it as a greedy row.
HEARTH_CONSTANT(kSamplingStages, 64u)
HEARTH_CONSTANT(kSamplingStagesAppend, 128u)
HEARTH_CONSTANT(kSamplingGiven, 256u)  // nothing is chosen: the row reports its given token

// One row's parameters. engine/sampling/sampler.h makes them from what a request asks for.
HEARTH_STRUCT(SamplingRow)
  uint flags;
  uint id_index;              // ids[id_index] gets the chosen token; kNoSlot: it is only reported
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
  uint proposals;  // where the ids that are proposed to its request begin in the step's words
  uint path;       // the proposals, as bits, that penalties count in addition to the history: those that
                   // lead to the row. Their ids are known, without kSampledId. 0: no path
  uint followers;  // the proposals, as bits, that may follow the row: it accepts the one that it samples
  uint mask;       // kSamplingMask: where its bits begin in the step's words; bit v % 32 of word v / 32
                   // says whether token v may be sampled
  // kSamplingMix: the other row, of this step or (with the bit kOtherModel) of another model's logits.
  uint other_row;
  float own_weight;     // logit = own_weight * own + other_weight * other,
  float other_weight;
  float log_plausible;  // if own >= the largest own logit + this, otherwise -infinity; -infinity: off
  uint given;           // kSamplingGiven: the token whose log-probability is reported
  // kSamplingDry: where its list begins in the step's words: the number of entries, then for each a
  // token, at most once, and the f32 that is subtracted from its logit.
  uint dry;
  uint stages;  // kSamplingStages: where its SamplingStages begin in the step's words
HEARTH_STRUCT_END

// What a stage does; the numbers are those of SamplingStages::order.
HEARTH_CONSTANT(kStageDraw, 0u)  // the last one
HEARTH_CONSTANT(kStageTopNSigma, 1u)
HEARTH_CONSTANT(kStageTopK, 2u)
HEARTH_CONSTANT(kStageTypical, 3u)
HEARTH_CONSTANT(kStageTopP, 4u)
HEARTH_CONSTANT(kStageMinP, 5u)
HEARTH_CONSTANT(kStageTopA, 6u)
HEARTH_CONSTANT(kStageEpsilon, 7u)
HEARTH_CONSTANT(kStageEta, 8u)
HEARTH_CONSTANT(kStageXtc, 9u)
HEARTH_CONSTANT(kStageTemperature, 10u)
HEARTH_CONSTANT(kStageSmoothing, 11u)
HEARTH_CONSTANT(kStageMirostat, 12u)
HEARTH_CONSTANT(kStageBits, 4u)

// The stages of a row for sample_stages, which applies them in the order given.
HEARTH_STRUCT(SamplingStages)
  uint order_low;   // kStageBits bits per stage, the first stage in the lowest bits; kStageDraw ends it
  uint order_high;
  float sigmas;     // top-n-sigma: standard deviations below the largest logit
  uint top_k;
  float typical_p;
  float top_p;
  float log_min_p;    // natural logarithms of these thresholds
  float log_top_a;
  float log_epsilon;
  float log_eta;
  float log_xtc_threshold;
  uint xtc_odds;      // of 2^32 that XTC applies; 0xffffffff: always
  float temperature_low;  // the temperature, from low to high: by the entropy's share of the largest
  float temperature_high; // possible one, to the power of the exponent
  float temperature_exponent;
  float smoothing_square;  // new distance below the largest logit = square * distance^2 + cube * distance^3
  float smoothing_cube;
  float mirostat_tau;
  float mirostat_eta;
  float mirostat_mu;  // unless the next is a slot, whose value is then newer
  uint mirostat_read_slot;
  uint mirostat_write_slot;  // gets the updated value; kNoSlot: none does
HEARTH_STRUCT_END

HEARTH_CONSTANT(kNoHistory, 0xffffffffu)
HEARTH_CONSTANT(kNoSlot, 0xffffffffu)
HEARTH_CONSTANT(kOtherModel, 0x80000000u)
HEARTH_CONSTANT(kMaxProposals, 32u)  // per request: the bits of a path and of followers
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

// Tokens that became final for a slot, to be counted in its history before the step samples.
HEARTH_STRUCT(HistoryCommit)
  uint slot;
  uint first;  // where the tokens begin in the step's words
  uint count;  // 0: padding
HEARTH_STRUCT_END

HEARTH_STRUCT(SamplingResult)
  uint id;        // 0 if there is none to choose
  float logprob;  // -infinity if there is none to choose
  uint kept;      // number of tokens left after the filters, or kNanLogits
  uint accepted;  // 1 + the first of the row's followers that is this token; 0: none is
HEARTH_STRUCT_END

HEARTH_CONSTANT(kNanLogits, 0xffffffffu)  // a logit of the row is NaN, so nothing was sampled

HEARTH_STRUCT(TokenLogprob)
  uint id;
  float logprob;
HEARTH_STRUCT_END

// What sample_scan finds in a chunk, the part of a row that one workgroup reads.
HEARTH_STRUCT(SamplingChunk)
  uint best_key;    // of the largest logit (common/sampling_key.glsl)
  uint best_id;     // the lowest token that has it
  uint lowest_key;  // of the smallest logit that is not -infinity; kNanKey if a logit is NaN
  uint sum_high;    // of exp(logit - largest of the chunk), in fixed point
  uint sum_low;
HEARTH_STRUCT_END

// The same in steps with stages: sums over the chunk's tokens, of which distances below its largest logit
// are added up in units of 2^-14 (steps), and weights times distances in units of a weight (moment).
HEARTH_STRUCT(SamplingSums)
  uint count;  // of tokens that are not at -infinity
  uint steps_low;
  uint steps_high;
  uint squares_low;  // of the steps
  uint squares_high;
  uint moment_low;
  uint moment_high;
HEARTH_STRUCT_END

// A quad is four logits, and a segment kSegmentQuads quads: what one lane of sample_scan reads at a
// time. The quads of a segment are as far apart as the kernel has lanes.
HEARTH_CONSTANT(kSegmentQuads, 8u)

#endif
