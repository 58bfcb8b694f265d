// From logits to tokens on the GPU, for a whole batch, each row with its own parameters. README.md
// in this folder defines which token is chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/ops/sampling.h"
#include "engine/sampling_options.h"
#include "params/sampling.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

// Where a row's tokens come from and go to.
struct SamplingPlace {
  uint32_t id_index = 0;  // in the array of sampled ids; kNoSlot: the token is only reported
  uint32_t counter = 0;   // how many draws its request has made before
  uint32_t bias_offset = 0, bias_count = 0;
  uint32_t history_slot = params::kNoHistory;
  bool append = true;  // adds the chosen token to the history
};

// The row as the kernels read it. An error says what is wrong with the options, in words for
// whoever sent the request. A default SamplingRow is padding. For a row that has_stages(), the
// caller adds them to the step's words (request_samplers.h).
Result<params::SamplingRow> make_sampling_row(const SamplingOptions& options,
                                              const SamplingPlace& place);

// The place of a verification row among its request's proposals. Bit i stands for proposal i.
struct VerifiedPlace {
  uint32_t proposals = 0;  // what StepBatch::add_proposals() returned
  uint32_t path = 0;       // the proposals that lead to the row, its own token included
  uint32_t followers = 0;  // the proposals that may follow it
};

// Turns a row into a verification row: its token is reported, but neither left in a slot nor
// counted in a history. Penalties count the tokens of its path in addition to the history. Also
// reports the first of its followers that is its token: this proposal is accepted if the row's own
// one is.
void verify_only(params::SamplingRow& row, const VerifiedPlace& place = {});

// A row that chooses nothing and reports the log-probability of `token`, as the model has it:
// without temperature, filters, biases or penalties. With `top_logprobs` most probable tokens.
params::SamplingRow make_score_row(uint32_t token, uint32_t top_logprobs);

// Only tokens of a mask may be sampled; StepBatch::add_mask() returns where the mask is.
void use_mask(params::SamplingRow& row, uint32_t mask);

// Another row's logits, to be mixed with a row's own before anything else is done to them.
struct LogitMix {
  uint32_t other_row = 0;    // a logit row of the same step that is not sampled, or of other_model
  bool other_model = false;  // the row is one of another model's last step
  float own_weight = 1.0f;   // logit = own_weight * own + other_weight * other
  float other_weight = 0.0f;
  // Above 0, only tokens stay whose own probability is at least this share of the largest one.
  float plausible = 0.0f;
};
// An error says which number is out of range.
Status mix_logits(params::SamplingRow& row, const LogitMix& mix);

// Whether the host has to read the row's outcome before the next step of its request.
bool is_judged(const params::SamplingRow& row);

// Whether the row has a path, DRY penalties or a mask; whether it is mixed; whether it has stages.
bool has_extras(const params::SamplingRow& row);
bool is_mixed(const params::SamplingRow& row);
bool has_stages(const params::SamplingRow& row);

// Why nothing could be sampled for `position` of a sequence, in words for the client;
// empty if something was.
std::optional<std::string> sampling_fault(const params::SamplingResult& result, uint64_t position);

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
  BufferSlice ids;              // u32, written at each row's id_index; followers may be there
  BufferSlice results;          // [rows] SamplingResult
  BufferSlice top;              // [rows, kMaxTopLogprobs] TokenLogprob
  BufferSlice words;            // the step's: proposals, masks, DRY penalties, stages
  // Only with shape.stages: [slots] f32, mirostat's mu; [rows] f32, the updated one.
  BufferSlice mirostat, mirostat_rows;
  SamplingShape shape;
  uint32_t history_capacity = 0;  // tokens per slot
};

// Records the kernels. The contents of the buffers may change from run to run, the shape may not.
Status record_sampling(CommandRecorder& recorder, PipelineStore& pipelines,
                       const SamplingPlan& plan, const Sampling& op);

// Counts tokens that became final in the histories of their slots. No slot is listed twice.
struct HistoryCommits {
  BufferSlice commits;  // [plan.groups.x] HistoryCommit
  BufferSlice words;    // u32: their tokens
  BufferSlice history_lengths, history;
  uint32_t history_capacity = 0;
};
Status record_history_commits(CommandRecorder& recorder, PipelineStore& pipelines,
                              const KernelPlan& plan, const HistoryCommits& op);

// Mixes rows' logits in place; to be recorded before record_sampling().
struct MixLogits {
  BufferSlice logits;  // [rows, vocab] f32
  BufferSlice
      other_logits;    // [other rows, vocab] f32: another model's; any buffer if there is none
  BufferSlice rows;    // [rows] SamplingRow
  BufferSlice biases;  // TokenBias; each row's begin at its bias_offset
  BufferSlice words;   // u32: masks
  SamplingShape shape;
};
Status record_mix_logits(CommandRecorder& recorder, PipelineStore& pipelines,
                         const KernelPlan& plan, const MixLogits& op);

}  // namespace hearth
