#include "engine/model/step_runner.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/sampling/sampler.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/queue.h"
#include "runtime/transfer.h"

namespace hearth {
namespace {

// More commands than a step of any model has.
constexpr uint32_t kProfiledCommands = 8192;

StepBucket batch_bucket(const StepBatch& batch) {
  StepBucket bucket =
      choose_bucket(batch.rows(), static_cast<uint32_t>(batch.sequences.size()), batch.longest(),
                    static_cast<uint32_t>(batch.logit_rows.size()));
  uint32_t longest = 0;
  for (const params::StepSequence& sequence : batch.sequences)
    longest = std::max(longest, sequence.first_position + sequence.rows);
  bucket.context = bucket_context(longest);
  bucket.trees = !batch.ancestors.empty();
  bucket.greedy = std::ranges::all_of(batch.sampling, is_plainly_greedy);
  if (std::ranges::any_of(batch.sampling, has_extras)) bucket.extras |= kStepRowExtras;
  if (std::ranges::any_of(batch.sampling, is_mixed)) bucket.extras |= kStepMixes;
  if (std::ranges::any_of(batch.sampling, has_stages)) bucket.extras |= kStepStages;
  if (!batch.commits.empty()) bucket.extras |= kStepCommits;
  if (!batch.pools.empty()) bucket.extras |= kStepPools;
  if (!batch.kept.empty() || !batch.compared.empty()) bucket.extras |= kStepHidden;
  return bucket;
}

}  // namespace

StepRunner::StepRunner(Device& device, PipelineStore& pipelines, const Model& model,
                       const StepRunnerOptions& options)
    : device_(device),
      pipelines_(pipelines),
      model_(model),
      options_(options),
      chained_(device.chain().usable()) {
  // There cannot be more logit rows than tokens.
  options_.limits.logit_rows = std::min(options_.limits.logit_rows, options_.limits.rows);
  options_.limits.context = std::min(options_.limits.context, model.context());
}

Result<std::unique_ptr<StepRunner>> StepRunner::create(Device& device, PipelineStore& pipelines,
                                                       const Model& model,
                                                       const StepRunnerOptions& options) {
  if (model.config().meets_ranks() && options.exchange == nullptr)
    return invalid("a share of a model cannot run without the other ranks");
  std::unique_ptr<StepRunner> runner(new StepRunner(device, pipelines, model, options));
  HEARTH_TRY(runner->allocate());
  HEARTH_ASSIGN(runner->forks_, BlockMover::create(device, pipelines, runner->kv_, runner->kv_));
  HEARTH_ASSIGN(runner->swaps_out_,
                BlockMover::create(device, pipelines, runner->kv_, runner->host_kv_));
  HEARTH_ASSIGN(runner->swaps_in_,
                BlockMover::create(device, pipelines, runner->host_kv_, runner->kv_));
  if (model.config().deal.is_divided())
    runner->dealt_.emplace(model.config().deal,
                           DealtPools{.host = runner->host_kv_,
                                      .forks = *runner->forks_,
                                      .swaps_out = *runner->swaps_out_,
                                      .swaps_in = *runner->swaps_in_},
                           *options.exchange);
  return runner;
}

StepRunner::~StepRunner() {
  device_.chain().forget(*this);
  // A lost device has nothing in flight, and a pending wait() has already failed.
  static_cast<void>(device_.compute().wait_idle().ok());
}

Result<SwapTraffic> StepRunner::swap_traffic() {
  HEARTH_ASSIGN(const BlockTraffic out, swaps_out_->traffic());
  HEARTH_ASSIGN(const BlockTraffic in, swaps_in_->traffic());
  return SwapTraffic{
      .out_bytes = out.bytes, .in_bytes = in.bytes, .seconds = out.seconds + in.seconds};
}

const DeviceCaps& StepRunner::planned_caps() const {
  const StepPlanning* planning = options_.planning;
  return planning != nullptr && planning->caps ? *planning->caps : device_.caps();
}

Status StepRunner::allocate() {
  const StepLimits& limits = options_.limits;
  const ModelConfig& config = model_.config();
  const BlockDeal& deal = config.deal;
  HEARTH_ASSIGN(kv_,
                KvCache::create(device_, config,
                                {.format = limits.kv, .blocks = deal.places(options_.kv_blocks)}));
  HEARTH_ASSIGN(host_kv_, KvCache::create(device_, config,
                                          {.format = limits.kv,
                                           .blocks = dealt_host_blocks(deal, options_.swap_blocks),
                                           .intent = MemoryIntent::kReadback}));
  const DeviceCaps& caps = planned_caps();
  HEARTH_ASSIGN(activations_,
                Activations::allocate(
                    device_, activation_sizes(caps, config, model_.plan().matmuls, limits)));
  HEARTH_ASSIGN(inputs_, StepInputs::create(device_,
                                            step_input_bytes(caps, config, limits,
                                                             attention_windows(config).size()),
                                            step_word_bytes(config, limits), config.deal));
  HEARTH_ASSIGN(boundary_,
                StepBoundary::create(device_, config, bucket_size(limits.rows), options_.rows));
  HEARTH_ASSIGN(meetings_, StepMeetings::create(device_, config, bucket_size(limits.rows),
                                                std::bit_ceil(limits.logit_rows)));
  StepPlannerInfo planning{.caps = caps,
                           .model = model_.plan(),
                           .limits = limits,
                           .matmul_scratch_bytes = activations_.matmul_scratch.bytes()};
  if (options_.planning != nullptr) {
    planning.fusion = options_.planning->fusion;
    planning.edit = options_.planning->edit;
  }
  planner_.emplace(planning);

  const auto allocate = [&](Buffer& buffer, uint64_t bytes, const char* name,
                            MemoryIntent intent = MemoryIntent::kActivations) -> Status {
    HEARTH_ASSIGN(buffer,
                  device_.memory().allocate({.bytes = bytes, .intent = intent, .name = name}));
    return {};
  };
  const uint64_t rows = std::bit_ceil(limits.logit_rows);
  if (options_.sampled_ids == nullptr)
    HEARTH_TRY(allocate(sampled_ids_,
                        (uint64_t{options_.slots} + options_.drafted_places) * sizeof(uint32_t),
                        "sampled ids"));
  HEARTH_TRY(allocate(mirostat_, options_.slots * sizeof(float), "mirostat"));
  HEARTH_TRY(allocate(history_lengths_, options_.slots * sizeof(uint32_t), "history lengths"));
  HEARTH_TRY(allocate(
      history_, uint64_t{options_.slots} * kHistoryTokens * sizeof(params::TokenCount), "history"));
  HEARTH_TRY(allocate(biases_, uint64_t{options_.slots} * kMaxBiases * sizeof(params::TokenBias),
                      "biases"));
  for (Sampled& sampled : sampled_) {
    HEARTH_TRY(allocate(sampled.results, rows * sizeof(params::SamplingResult), "sampled",
                        MemoryIntent::kReadback));
    HEARTH_TRY(allocate(sampled.top, rows * params::kMaxTopLogprobs * sizeof(params::TokenLogprob),
                        "top log-probabilities", MemoryIntent::kReadback));
    HEARTH_TRY(allocate(sampled.mirostat, rows * sizeof(float), "sampled mirostat",
                        MemoryIntent::kReadback));
  }
  // Padding rows read the sampled ids, and histories are read up to their lengths.
  HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device_, {.name = "clear"}));
  if (sampled_ids_) recorder.fill(sampled_ids_.all(), 0);
  recorder.fill(history_lengths_.all(), 0);
  HEARTH_ASSIGN(const CommandBuffer commands, recorder.finish());
  return device_.compute().run(commands);
}

Status StepRunner::prepare(const StepBatch& batch) {
  HEARTH_TRY(check(batch));
  HEARTH_TRY(recorded(batch_bucket(batch)));
  return {};
}

Result<StepTicket> StepRunner::submit(const StepBatch& batch) {
  HEARTH_TRY(check(batch));
  HEARTH_TRY(finish(next_copy_));
  HEARTH_TRY(leave_failed_chain());
  const StepBucket bucket = batch_bucket(batch);
  // Ranks that meet within a step must all run the same one.
  const bool may_be_larger = preparation_ != nullptr && !model_.config().meets_ranks();
  HEARTH_ASSIGN(const Recorded* step,
                may_be_larger ? recorded_or_larger(bucket) : recorded(bucket));
  return submit(batch, *step);
}

Result<std::vector<GpuSpan>> StepRunner::profile(const StepBatch& batch) {
  if (model_.config().meets_ranks())
    return unsupported("a step within which ranks meet cannot be profiled");
  HEARTH_TRY(check(batch));
  HEARTH_TRY(finish(next_copy_));
  const StepBucket bucket = batch_bucket(batch);
  HEARTH_ASSIGN(const auto timer, GpuTimer::create(device_, kProfiledCommands));
  const StepPlan plan = planner_->plan(bucket);
  Recorded step(plan);
  HEARTH_ASSIGN(step.commands[next_copy_], record(pipelines_, plan, next_copy_, timer.get()));
  HEARTH_ASSIGN(const StepTicket ticket, submit(batch, step));
  HEARTH_TRY(wait(ticket));
  return timer->read();
}

Result<StepTicket> StepRunner::submit(const StepBatch& batch, const Recorded& step) {
  StepTicket ticket{.copy = next_copy_,
                    .rows = batch.rows(),
                    .logit_rows = static_cast<uint32_t>(batch.logit_rows.size()),
                    .pools = static_cast<uint32_t>(batch.pools.size())};
  for (const params::SamplingRow& row : batch.sampling) {
    ticket.with_top |= row.top_logprobs > 0;
    ticket.with_mirostat |= has_stages(row);
    ticket.judged |= is_judged(row);
  }
  ticket.with_similarity = !batch.compared.empty();
  HEARTH_TRY(boundary_.write(ticket.copy, batch.entering));
  HEARTH_TRY(inputs_.write(ticket.copy, batch, step.bucket, step.layout, step.attention,
                           planner_->windows()));
  HEARTH_TRY(run_segments(step, ticket.copy));
  ticket.done = last_use_[ticket.copy];
  submitted_[ticket.copy] = step.bucket;
  if (step.meetings.empty()) device_.chain().submitted(*this, ticket.copy, ticket.done);
  // Only after success: if submitting fails, the results of the other copy may not have been read
  // yet.
  next_copy_ = (next_copy_ + 1) % StepInputs::kCopies;
  return ticket;
}

Status StepRunner::run_segments(const Recorded& step, size_t copy) {
  Queue& queue = device_.compute();
  const std::vector<CommandBuffer>& commands = step.commands[copy];
  for (size_t i = 0; i < commands.size(); ++i) {
    HEARTH_ASSIGN(last_use_[copy], queue.submit(commands[i]));
    if (i == step.meetings.size()) break;
    const TimelinePoint& done = last_use_[copy];
    HEARTH_TRY(options_.waits_promptly ? done.timeline->wait_promptly(done.value)
                                       : queue.wait(done));
    HEARTH_TRY(meetings_.meet(*options_.exchange, step.meetings[i]));
  }
  return {};
}

Result<StepOutcome> StepRunner::wait(const StepTicket& ticket) {
  if (ticket.judged || options_.waits_promptly)
    HEARTH_TRY(ticket.done.timeline->wait_promptly(ticket.done.value));
  HEARTH_TRY(finish(ticket.copy));
  const Sampled& sampled = sampled_[ticket.copy];
  HEARTH_TRY(sampled.results.invalidate());
  if (ticket.with_top) HEARTH_TRY(sampled.top.invalidate());
  if (ticket.with_mirostat) HEARTH_TRY(sampled.mirostat.invalidate());
  StepOutcome outcome;
  outcome.sampled = sampled.results.view<const params::SamplingResult>().first(ticket.logit_rows);
  if (ticket.with_top)
    outcome.top = sampled.top.view<const params::TokenLogprob>().first(size_t{ticket.logit_rows} *
                                                                       params::kMaxTopLogprobs);
  if (ticket.pools > 0) {
    HEARTH_TRY(pooled_[ticket.copy].invalidate());
    outcome.pooled = pooled_[ticket.copy].view<const float>().first(size_t{ticket.pools} *
                                                                    model_.config().width);
  }
  if (ticket.with_similarity) {
    HEARTH_TRY(similarity_[ticket.copy].invalidate());
    outcome.similarity = similarity_[ticket.copy].view<const float>().first(
        size_t{ticket.logit_rows} * params::kComparisonParts);
  }
  HEARTH_ASSIGN(outcome.leaving, boundary_.read(ticket.copy, ticket.rows));
  if (ticket.with_mirostat)
    outcome.mirostat = sampled.mirostat.view<const float>().first(ticket.logit_rows);
  return outcome;
}

Result<std::vector<float>> StepRunner::read_logits(uint32_t logit_rows) {
  std::vector<float> logits(size_t{logit_rows} * model_.config().vocabulary);
  HEARTH_ASSIGN(const auto transfer, Transfer::create(device_));
  HEARTH_TRY(transfer->download(activations_.logits.slice(0, logits.size() * sizeof(float)),
                                std::as_writable_bytes(std::span(logits))));
  return logits;
}

}  // namespace hearth
