#include "engine/sampling/sampler.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/sampling/stages.h"
#include "params/history_commit.h"
#include "params/mix_logits.h"
#include "params/sample_pick.h"
#include "params/sample_scan.h"
#include "params/sample_stages.h"

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
  if (shape.greedy == plan.pick.has_value() || shape.stages != plan.stages.has_value())
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
  if (shape.stages && (op.mirostat.buffer == nullptr || op.mirostat_rows.bytes < rows * 4))
    return Error{ErrorKind::kInvalid, "sampling with stages needs buffers for mirostat"};
  if (op.words.bytes < sizeof(uint32_t))
    return Error{ErrorKind::kInvalid, "sampling needs the step's words"};
  return {};
}

}  // namespace

Result<params::SamplingRow> make_sampling_row(const SamplingOptions& given,
                                              const SamplingPlace& place) {
  const SamplingOptions options = only_listed(given);
  HEARTH_TRY(check("temperature", options.temperature, 0.0f, 1e6f));
  HEARTH_TRY(check("top_p", options.top_p, 0.0f, 1.0f));
  HEARTH_TRY(check("min_p", options.min_p, 0.0f, 1.0f));
  HEARTH_TRY(check("repetition_penalty", options.repetition_penalty, 1e-3f, 1e3f));
  HEARTH_TRY(check("presence_penalty", options.presence_penalty, -1e3f, 1e3f));
  HEARTH_TRY(check("frequency_penalty", options.frequency_penalty, -1e3f, 1e3f));
  HEARTH_TRY(check_stages(options));
  if (options.top_logprobs > params::kMaxTopLogprobs)
    return Error{ErrorKind::kInvalid, fmt::format("log-probabilities of at most {} tokens, not {}",
                                                  params::kMaxTopLogprobs, options.top_logprobs)};
  const bool greedy = options.temperature < kLeastTemperature;
  const bool stages = uses_stages(options);
  const uint32_t append = stages ? params::kSamplingStagesAppend : params::kSamplingAppend;
  return params::SamplingRow{.flags = params::kSamplingActive | (place.append ? append : 0u) |
                                      (greedy || stages ? params::kSamplingGreedy : 0u) |
                                      (stages ? params::kSamplingStages : 0u),
                             .id_index = place.id_index,
                             .inverse_temperature = greedy ? 1.0f : 1.0f / options.temperature,
                             .top_k = options.top_k,
                             .top_p = options.top_p,
                             .log_min_p = options.min_p > 0
                                              ? std::log(options.min_p)
                                              : -std::numeric_limits<float>::infinity(),
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

void verify_only(params::SamplingRow& row, const VerifiedPlace& place) {
  row.id_index = params::kNoSlot;
  row.flags &= ~(params::kSamplingAppend | params::kSamplingStagesAppend);
  row.proposals = place.proposals;
  row.path = row.history_slot == params::kNoHistory ? 0 : place.path;
  row.followers = place.followers;
}

params::SamplingRow make_score_row(uint32_t token, uint32_t top_logprobs) {
  return {.flags = params::kSamplingActive | params::kSamplingGreedy | params::kSamplingGiven,
          .id_index = params::kNoSlot,
          .inverse_temperature = 1.0f,
          .top_p = 1.0f,
          .log_min_p = -std::numeric_limits<float>::infinity(),
          .repetition = 1.0f,
          .history_slot = params::kNoHistory,
          .top_logprobs = top_logprobs,
          .given = token};
}

void use_mask(params::SamplingRow& row, uint32_t mask) {
  row.flags |= params::kSamplingMask;
  row.mask = mask;
}

Status mix_logits(params::SamplingRow& row, const LogitMix& mix) {
  HEARTH_TRY(check("the weight of a row's own logits", mix.own_weight, -1e6f, 1e6f));
  HEARTH_TRY(check("the weight of the other logits", mix.other_weight, -1e6f, 1e6f));
  HEARTH_TRY(check("the share of the largest probability", mix.plausible, 0.0f, 1.0f));
  row.flags |= params::kSamplingMix;
  row.other_row = mix.other_row | (mix.other_model ? params::kOtherModel : 0u);
  row.own_weight = mix.own_weight;
  row.other_weight = mix.other_weight;
  row.log_plausible =
      mix.plausible > 0 ? std::log(mix.plausible) : -std::numeric_limits<float>::infinity();
  return {};
}

bool is_judged(const params::SamplingRow& row) {
  return (row.flags & params::kSamplingActive) != 0 && row.id_index == params::kNoSlot &&
         (row.flags & params::kSamplingGiven) == 0;
}

bool has_extras(const params::SamplingRow& row) {
  return row.path != 0 || (row.flags & (params::kSamplingMask | params::kSamplingDry)) != 0;
}

bool is_mixed(const params::SamplingRow& row) { return (row.flags & params::kSamplingMix) != 0; }

bool has_stages(const params::SamplingRow& row) {
  return (row.flags & params::kSamplingStages) != 0;
}

std::optional<std::string> sampling_fault(const params::SamplingResult& result, uint64_t position) {
  if (result.kept == params::kNanLogits)
    return fmt::format("the model produced NaN logits at position {}", position);
  if (result.kept == 0 && std::isinf(result.logprob))
    return fmt::format("no token can be sampled at position {}: every logit is -infinity",
                       position);
  return std::nullopt;
}

bool is_plainly_greedy(const params::SamplingRow& row) {
  if ((row.flags & params::kSamplingActive) == 0) return true;
  if (has_stages(row)) return false;
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

  const params::SampleScan scan_params{.logits = op.logits,
                                       .rows = op.rows,
                                       .biases = op.biases,
                                       .history_lengths = op.history_lengths,
                                       .history = op.history,
                                       .chunks = chunks,
                                       .segments = segments,
                                       .tallies = tallies,
                                       .counts = op.counts,
                                       .ids = op.ids,
                                       .results = op.results,
                                       .words = op.words,
                                       .vocab = op.shape.vocab,
                                       .history_capacity = op.history_capacity,
                                       .tally_words = plan.tally_words};
  recorder.dispatch({.pipeline = *scan,
                     .arguments = scan_params,
                     .groups = plan.scan.groups,
                     .lasting = !plan.pick});
  if (!plan.pick) return {};

  HEARTH_ASSIGN(const Pipeline* pick, pipelines.get(plan.pick->pipeline));
  const params::SamplePick pick_params{.logits = op.logits,
                                       .rows = op.rows,
                                       .words = op.words,
                                       .history_lengths = op.history_lengths,
                                       .history = op.history,
                                       .chunks = chunks,
                                       .segments = segments,
                                       .tallies = tallies,
                                       .ids = op.ids,
                                       .results = op.results,
                                       .top = op.top,
                                       .vocab = op.shape.vocab,
                                       .history_capacity = op.history_capacity,
                                       .chunk_count = plan.chunks,
                                       .segment_count = plan.segments};
  recorder.dispatch(
      {.pipeline = *pick, .arguments = pick_params, .groups = plan.pick->groups, .lasting = true});
  if (!plan.stages) return {};

  HEARTH_ASSIGN(const Pipeline* stages, pipelines.get(plan.stages->pipeline));
  const params::SampleStages stages_params{.logits = op.logits,
                                           .rows = op.rows,
                                           .words = op.words,
                                           .history_lengths = op.history_lengths,
                                           .history = op.history,
                                           .chunks = chunks,
                                           .segments = segments,
                                           .mirostat = op.mirostat,
                                           .mirostat_rows = op.mirostat_rows,
                                           .ids = op.ids,
                                           .results = op.results,
                                           .vocab = op.shape.vocab,
                                           .history_capacity = op.history_capacity,
                                           .chunk_count = plan.chunks,
                                           .segment_count = plan.segments};
  recorder.dispatch({.pipeline = *stages,
                     .arguments = stages_params,
                     .groups = plan.stages->groups,
                     .lasting = true});
  return {};
}

Status record_history_commits(CommandRecorder& recorder, PipelineStore& pipelines,
                              const KernelPlan& plan, const HistoryCommits& op) {
  if (op.commits.bytes < plan.groups.x * sizeof(params::HistoryCommit))
    return Error{ErrorKind::kInvalid, fmt::format("a list of {} bytes is too short for {} commits",
                                                  op.commits.bytes, plan.groups.x)};
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::CommitHistory params{.commits = op.commits,
                                     .words = op.words,
                                     .history_lengths = op.history_lengths,
                                     .history = op.history,
                                     .history_capacity = op.history_capacity};
  recorder.dispatch(
      {.pipeline = *pipeline, .arguments = params, .groups = plan.groups, .lasting = true});
  return {};
}

Status record_mix_logits(CommandRecorder& recorder, PipelineStore& pipelines,
                         const KernelPlan& plan, const MixLogits& op) {
  const uint64_t rows = op.shape.rows;
  if (op.logits.bytes < rows * op.shape.vocab * 4 ||
      op.rows.bytes < rows * sizeof(params::SamplingRow))
    return Error{ErrorKind::kInvalid, fmt::format("a buffer for mixing {} rows of {} is too small",
                                                  op.shape.rows, op.shape.vocab)};
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::MixLogits params{.logits = op.logits,
                                 .other_logits = op.other_logits,
                                 .rows = op.rows,
                                 .biases = op.biases,
                                 .words = op.words,
                                 .vocab = op.shape.vocab};
  recorder.dispatch({.pipeline = *pipeline, .arguments = params, .groups = plan.groups});
  return {};
}

}  // namespace hearth
