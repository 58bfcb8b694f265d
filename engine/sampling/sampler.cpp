#include "engine/sampling/sampler.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "params/sample_pick.h"
#include "params/sample_scan.h"

namespace hearth {
namespace {

constexpr uint32_t kMaxRows = 65535;  // workgroups in y that every device can dispatch

// A finite number from `least` to `most`.
Status check(const char* name, float value, float least, float most) {
  if (value >= least && value <= most) return {};
  return Error{ErrorKind::kInvalid,
               fmt::format("{} must be from {} to {}, not {}", name, least, most, value)};
}

Status check(const SamplingPlan& plan, const Sampling& op) {
  const SamplingShape& shape = op.shape;
  if (shape.rows == 0 || shape.vocab == 0 || shape.vocab > kMaxSamplingVocab)
    return Error{ErrorKind::kInvalid, fmt::format("cannot sample {} rows of {} logits (at most {})",
                                                  shape.rows, shape.vocab, kMaxSamplingVocab)};
  if (shape.rows > kMaxRows)
    return Error{ErrorKind::kInvalid,
                 fmt::format("cannot sample {} rows at once (at most {})", shape.rows, kMaxRows)};
  if (shape.greedy == plan.pick.has_value())
    return Error{ErrorKind::kInvalid, "the sampling plan was made for another kind of rows"};
  const uint64_t rows = shape.rows;
  if (op.logits.bytes < rows * shape.vocab * 4 ||
      op.rows.bytes < rows * sizeof(params::SamplingRow) ||
      op.results.bytes < rows * sizeof(params::SamplingResult) ||
      op.top.bytes < rows * params::kMaxTopLogprobs * sizeof(params::TokenLogprob) ||
      op.scratch.bytes < plan.scratch_bytes() || op.counts.bytes < rows * sizeof(uint32_t))
    return Error{
        ErrorKind::kInvalid,
        fmt::format("a buffer for sampling {} rows of {} is too small", shape.rows, shape.vocab)};
  return {};
}

}  // namespace

Result<params::SamplingRow> make_sampling_row(const SamplingOptions& options,
                                              const SamplingPlace& place) {
  HEARTH_TRY(check("temperature", options.temperature, 0.0f, 1e6f));
  HEARTH_TRY(check("top_p", options.top_p, 0.0f, 1.0f));
  HEARTH_TRY(check("min_p", options.min_p, 0.0f, 1.0f));
  HEARTH_TRY(check("repetition_penalty", options.repetition_penalty, 1e-3f, 1e3f));
  HEARTH_TRY(check("presence_penalty", options.presence_penalty, -1e3f, 1e3f));
  HEARTH_TRY(check("frequency_penalty", options.frequency_penalty, -1e3f, 1e3f));
  if (options.top_logprobs > params::kMaxTopLogprobs)
    return Error{ErrorKind::kInvalid, fmt::format("log-probabilities of at most {} tokens, not {}",
                                                  params::kMaxTopLogprobs, options.top_logprobs)};
  // Below this, any other token's weight is 0 unless its logit almost equals the largest.
  constexpr float kLeastTemperature = 1e-5f;
  const bool greedy = options.temperature < kLeastTemperature;
  return params::SamplingRow{
      .flags = params::kSamplingActive | (place.append ? params::kSamplingAppend : 0u) |
               (greedy ? params::kSamplingGreedy : 0u),
      .id_index = place.id_index,
      .inverse_temperature = greedy ? 1.0f : 1.0f / options.temperature,
      .top_k = options.top_k,
      .top_p = options.top_p,
      .log_min_p =
          options.min_p > 0 ? std::log(options.min_p) : -std::numeric_limits<float>::infinity(),
      .repetition = options.repetition_penalty,
      .presence = options.presence_penalty,
      .frequency = options.frequency_penalty,
      .seed_low = static_cast<uint32_t>(options.seed),
      .seed_high = static_cast<uint32_t>(options.seed >> 32),
      .counter = place.counter,
      .bias_offset = place.bias_offset,
      .bias_count = place.bias_count,
      .history_slot = place.history_slot,
      .top_logprobs = options.top_logprobs};
}

bool is_plainly_greedy(const params::SamplingRow& row) {
  if ((row.flags & params::kSamplingActive) == 0) return true;
  const bool greedy = (row.flags & params::kSamplingGreedy) != 0 || row.top_k == 1;
  const bool counted = (row.flags & params::kSamplingAppend) != 0;
  return greedy && row.top_logprobs == 0 && !(counted && row.history_slot != params::kNoHistory);
}

Status record_sampling(CommandRecorder& recorder, PipelineStore& pipelines,
                       const SamplingPlan& plan, const Sampling& op) {
  HEARTH_TRY(check(plan, op));
  HEARTH_ASSIGN(const Pipeline* scan, pipelines.get(plan.scan.pipeline));
  const BufferSlice chunks = op.scratch.slice(0, plan.chunk_bytes);
  const BufferSlice segments = op.scratch.slice(plan.chunk_bytes, plan.segment_bytes);
  // Without tallies the kernels get another buffer in their place, which they access anyway.
  const BufferSlice tallies =
      plan.tally_bytes > 0
          ? op.scratch.slice(plan.chunk_bytes + plan.segment_bytes, plan.tally_bytes)
          : chunks;

  const params::SampleScan scan_params{.logits = op.logits.address(),
                                       .rows = op.rows.address(),
                                       .biases = op.biases.address(),
                                       .history_lengths = op.history_lengths.address(),
                                       .history = op.history.address(),
                                       .chunks = chunks.address(),
                                       .segments = segments.address(),
                                       .tallies = tallies.address(),
                                       .counts = op.counts.address(),
                                       .ids = op.ids.address(),
                                       .results = op.results.address(),
                                       .vocab = op.shape.vocab,
                                       .history_capacity = op.history_capacity,
                                       .tally_words = plan.tally_words};
  recorder.dispatch(
      {.pipeline = *scan,
       .push = scan_params,
       .groups = plan.scan.groups,
       .accesses = {reads_writes(op.logits), reads(op.rows), reads(op.biases),
                    reads(op.history_lengths), reads(op.history), writes(chunks), writes(segments),
                    writes(tallies), reads_writes(op.counts), writes(op.ids), writes(op.results)}});
  if (!plan.pick) return {};

  HEARTH_ASSIGN(const Pipeline* pick, pipelines.get(plan.pick->pipeline));
  const params::SamplePick pick_params{.logits = op.logits.address(),
                                       .rows = op.rows.address(),
                                       .history_lengths = op.history_lengths.address(),
                                       .history = op.history.address(),
                                       .chunks = chunks.address(),
                                       .segments = segments.address(),
                                       .tallies = tallies.address(),
                                       .ids = op.ids.address(),
                                       .results = op.results.address(),
                                       .top = op.top.address(),
                                       .vocab = op.shape.vocab,
                                       .history_capacity = op.history_capacity,
                                       .chunk_count = plan.chunks,
                                       .chunk_tokens = plan.chunk_tokens,
                                       .segment_count = plan.segments};
  recorder.dispatch(
      {.pipeline = *pick,
       .push = pick_params,
       .groups = plan.pick->groups,
       .accesses = {reads(op.logits), reads(op.rows), reads_writes(op.history_lengths),
                    reads_writes(op.history), reads(chunks), reads(segments), reads_writes(tallies),
                    writes(op.ids), writes(op.results), writes(op.top)}});
  return {};
}

}  // namespace hearth
