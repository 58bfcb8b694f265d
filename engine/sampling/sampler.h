// From logits to tokens on the GPU, for a whole batch, each row with its own parameters. README.md
// in this folder defines which token is chosen.
#pragma once

#include <cstdint>

#include "engine/ops/kernel_choice.h"
#include "engine/sampling_options.h"
#include "params/sampling.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

// Where a row's tokens come from and go to.
struct SamplingPlace {
  uint32_t id_index = 0;  // in the array of sampled ids
  uint32_t counter = 0;   // how many draws its request has made before
  uint32_t bias_offset = 0, bias_count = 0;
  uint32_t history_slot = params::kNoHistory;
  bool append = true;  // adds the chosen token to the history
};

// The row as the kernels read it. An error says what is wrong with the options, in words for
// whoever sent the request. A default SamplingRow is padding.
Result<params::SamplingRow> make_sampling_row(const SamplingOptions& options,
                                              const SamplingPlace& place);

// Whether the row needs only the token with its largest logit, or is padding.
bool is_plainly_greedy(const params::SamplingRow& row);

// Every slice needs a buffer, even if no row uses it. The shape is the one that the plan was made
// for. `ids`, `results` and `top` may be in memory that the host reads.
struct Sampling {
  BufferSlice logits;           // [rows, vocab] f32; biases and penalties are applied in place
  BufferSlice rows;             // [rows] SamplingRow
  BufferSlice biases;           // TokenBias
  BufferSlice history_lengths;  // [slots] u32
  BufferSlice history;          // [slots, history_capacity] TokenCount
  BufferSlice scratch;          // plan.scratch_bytes()
  BufferSlice counts;           // [rows] u32, zero before and after the kernels
  BufferSlice ids;              // u32, written at each row's id_index
  BufferSlice results;          // [rows] SamplingResult
  BufferSlice top;              // [rows, kMaxTopLogprobs] TokenLogprob
  SamplingShape shape;
  uint32_t history_capacity = 0;  // tokens per slot
};

// Records the kernels. The contents of the buffers may change from run to run, the shape may not.
Status record_sampling(CommandRecorder& recorder, PipelineStore& pipelines,
                       const SamplingPlan& plan, const Sampling& op);

}  // namespace hearth
