#include "engine/model/step_runner.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/ops/tuning/profile.h"
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

// Whether the row's DRY penalties and stages are in the words.
bool refers_to_words(const params::SamplingRow& row, const std::vector<uint32_t>& words) {
  if (has_stages(row) &&
      row.stages + sizeof(params::SamplingStages) / sizeof(uint32_t) > words.size())
    return false;
  if ((row.flags & params::kSamplingDry) == 0) return true;
  return row.dry < words.size() && row.dry + 2 * uint64_t{words[row.dry]} < words.size();
}

}  // namespace

StepRunner::StepRunner(Device& device, PipelineStore& pipelines, const Model& model,
                       const StepRunnerOptions& options)
    : device_(device),
      pipelines_(pipelines),
      model_(model),
      options_(options),
      windows_(attention_windows(model.config())),
      chained_(device.chain().usable()) {
  // There cannot be more logit rows than tokens.
  options_.limits.logit_rows = std::min(options_.limits.logit_rows, options_.limits.rows);
  options_.limits.context = std::min(options_.limits.context, model.context());
}

uint64_t slot_bytes() {
  return 2 * sizeof(uint32_t) + sizeof(float) +
         StepExecutor::kHistoryTokens * sizeof(params::TokenCount) +
         StepExecutor::kMaxBiases * sizeof(params::TokenBias);
}

Result<std::unique_ptr<StepRunner>> StepRunner::create(Device& device, PipelineStore& pipelines,
                                                       const Model& model,
                                                       const StepRunnerOptions& options) {
  std::unique_ptr<StepRunner> runner(new StepRunner(device, pipelines, model, options));
  HEARTH_TRY(runner->allocate());
  HEARTH_ASSIGN(runner->forks_, BlockMover::create(device, pipelines, runner->kv_, runner->kv_));
  HEARTH_ASSIGN(runner->swaps_out_,
                BlockMover::create(device, pipelines, runner->kv_, runner->host_kv_));
  HEARTH_ASSIGN(runner->swaps_in_,
                BlockMover::create(device, pipelines, runner->host_kv_, runner->kv_));
  runner->find_distinct_layers();
  return runner;
}

ForwardContext StepRunner::context(PipelineStore& pipelines, size_t copy) const {
  return {.caps = device_.caps(),
          .pipelines = pipelines,
          .config = model_.config(),
          .weights = model_.weights(),
          .rope_table = model_.rope_table(),
          .window_rope_table = model_.window_rope_table(),
          .activations = activations_,
          .kv = kv_,
          .inputs = inputs_.buffer(copy),
          .sampled_ids = options_.sampled_ids != nullptr ? *options_.sampled_ids : sampled_ids_,
          .windows = windows_,
          .context = options_.limits.context,
          .deterministic = options_.limits.deterministic};
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

Status StepRunner::allocate() {
  const StepLimits& limits = options_.limits;
  const ModelConfig& config = model_.config();
  HEARTH_ASSIGN(
      kv_, KvCache::create(device_, config, {.format = limits.kv, .blocks = options_.kv_blocks}));
  HEARTH_ASSIGN(host_kv_, KvCache::create(device_, config,
                                          {.format = limits.kv,
                                           .blocks = options_.swap_blocks,
                                           .intent = MemoryIntent::kReadback}));
  HEARTH_ASSIGN(activations_,
                Activations::allocate(device_, activation_sizes(device_.caps(), config,
                                                                model_.plan().matmuls, limits)));
  HEARTH_ASSIGN(
      inputs_,
      StepInputs::create(device_, step_input_bytes(device_.caps(), config, limits, windows_.size()),
                         step_word_bytes(config, limits)));

  const auto allocate = [&](Buffer& buffer, uint64_t bytes, const char* name,
                            MemoryIntent intent = MemoryIntent::kActivations) -> Status {
    HEARTH_ASSIGN(buffer,
                  device_.memory().allocate({.bytes = bytes, .intent = intent, .name = name}));
    return {};
  };
  const uint64_t rows = std::bit_ceil(limits.logit_rows);
  HEARTH_TRY(allocate(sampled_ids_, options_.slots * sizeof(uint32_t), "sampled ids"));
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
  recorder.fill(sampled_ids_.all(), 0);
  recorder.fill(history_lengths_.all(), 0);
  HEARTH_ASSIGN(const CommandBuffer commands, recorder.finish());
  return device_.compute().run(commands);
}

Status StepRunner::record_sampling(const Recording& recording) const {
  const auto& [recorder, pipelines, bucket, layout, copy] = recording;
  const Buffer& inputs = inputs_.buffer(copy);
  // Even without logits: a commit is counted once, by the step it came with.
  if ((bucket.extras & kStepCommits) != 0)
    HEARTH_TRY(record_history_commits(
        recorder, pipelines, choose_history_commit(device_.caps(), bucket.sequences),
        {.commits = inputs.slice(layout.commits, bucket.sequences * sizeof(params::HistoryCommit)),
         .words = inputs_.words(copy),
         .history_lengths = history_lengths_.all(),
         .history = history_.all(),
         .history_capacity = kHistoryTokens}));
  if (bucket.logit_rows == 0) return {};
  const SamplingShape shape{.rows = bucket.logit_rows,
                            .vocab = model_.config().vocabulary,
                            .greedy = bucket.greedy,
                            .extras = (bucket.extras & kStepRowExtras) != 0,
                            .stages = (bucket.extras & kStepStages) != 0};
  const BufferSlice logits = activations_.logits.slice(0, uint64_t{shape.rows} * shape.vocab * 4);
  const BufferSlice rows = inputs.slice(layout.sampling, shape.rows * sizeof(params::SamplingRow));
  if ((bucket.extras & kStepMixes) != 0)
    HEARTH_TRY(record_mix_logits(
        recorder, pipelines, choose_mix_logits(device_.caps(), shape),
        {.logits = logits,
         .other_logits = options_.other_logits != nullptr ? options_.other_logits->all() : rows,
         .rows = rows,
         .shape = shape}));
  return hearth::record_sampling(recorder, pipelines, choose_sampling(device_.caps(), shape),
                                 {.logits = logits,
                                  .rows = rows,
                                  .biases = biases_.all(),
                                  .history_lengths = history_lengths_.all(),
                                  .history = history_.all(),
                                  .scratch = activations_.sampling_scratch.all(),
                                  .counts = activations_.sampling_counts.all(),
                                  .ids = sampled_ids_.all(),
                                  .results = sampled_[copy].results.all(),
                                  .top = sampled_[copy].top.all(),
                                  .step_ids = inputs.slice(layout.ids, bucket.rows * 4),
                                  .words = inputs_.words(copy),
                                  .mirostat = mirostat_.all(),
                                  .mirostat_rows = sampled_[copy].mirostat.all(),
                                  .shape = shape,
                                  .history_capacity = kHistoryTokens});
}

StepRunner::Recorded StepRunner::plan(const StepBucket& bucket) const {
  Recorded step;
  step.bucket = bucket;
  step.attention = choose_attention(
      device_.caps(),
      step_attention_shape(model_.config(), kv_.format(), bucket, options_.limits.context),
      options_.limits.deterministic);
  step.layout = step_layout(bucket, step.attention.capacity, windows_.size());
  return step;
}

Result<CommandBuffer> StepRunner::record(PipelineStore& pipelines, const StepBucket& bucket,
                                         const StepLayout& layout, size_t copy, GpuTimer* timer) {
  const uint32_t chained_rows = tuning_profile(device_.caps()).chained_rows;
  HEARTH_ASSIGN(
      CommandRecorder recorder,
      CommandRecorder::begin(device_, {.name = "step",
                                       .timer = timer,
                                       .serial = timer != nullptr,
                                       .chained = timer == nullptr && bucket.rows <= chained_rows,
                                       .guarded = true}));
  if ((bucket.extras & kStepPools) != 0) HEARTH_TRY(allocate_pools());
  if ((bucket.extras & kStepHidden) != 0) HEARTH_TRY(allocate_hidden());
  HEARTH_TRY(record_step({recorder, pipelines, bucket, layout, copy}, layers_,
                         {.pooled = pooled_[copy],
                          .similarity = similarity_[copy],
                          .pages = hidden_ ? hidden_->pages() : HiddenPages{}}));
  return recorder.finish();
}

Status StepRunner::record_step(const Recording& recording, std::span<const uint32_t> layers,
                               const HiddenOutputs& outputs) const {
  const StepBucket& bucket = recording.bucket;
  const bool pools = (bucket.extras & kStepPools) != 0;
  const bool hidden = (bucket.extras & kStepHidden) != 0;
  const ForwardContext forward_context = context(recording.pipelines, recording.copy);
  Forward forward(forward_context, recording.recorder, bucket);
  HEARTH_TRY(forward.embed());
  for (const uint32_t layer : layers)
    HEARTH_TRY(model_.architecture().record_layer(forward, layer));
  if (bucket.logit_rows > 0 || forward.needs_all_rows())
    HEARTH_TRY(forward.norm(WeightRole::kOutputNorm));
  if (pools) HEARTH_TRY(forward.pool(outputs.pooled));
  if (hidden) HEARTH_TRY(forward.keep_and_compare(outputs.pages, outputs.similarity));
  if (forward.needs_all_rows()) HEARTH_TRY(forward.pick_normed());
  if (bucket.logit_rows > 0) HEARTH_TRY(forward.logits());
  recording.recorder.set_section(step_part::kSampling);
  return record_sampling(recording);
}

// Room for the sums of pooled rows, made by the first step that needs it.
Status StepRunner::allocate_pools() {
  if (pooled_.back()) return {};
  const StepLimits& limits = options_.limits;
  // Half of the sequences of a bucket may be padding.
  const uint64_t ranges = step_pools(
      {.rows = bucket_size(limits.rows), .sequences = 2 * std::bit_ceil(limits.sequences)});
  for (Buffer& pooled : pooled_) {
    HEARTH_ASSIGN(
        pooled, device_.memory().allocate({.bytes = ranges * model_.config().width * sizeof(float),
                                           .intent = MemoryIntent::kReadback,
                                           .name = "pooled"}));
  }
  return {};
}

// The pages of hidden states, and room for similarities.
Status StepRunner::allocate_hidden() {
  if (similarity_.back()) return {};
  HEARTH_ASSIGN(hidden_, HiddenStore::create(device_, model_.config().width, options_.slots,
                                             options_.limits.context));
  const uint64_t rows = std::bit_ceil(options_.limits.logit_rows);
  for (Buffer& similarity : similarity_) {
    HEARTH_ASSIGN(similarity, device_.memory().allocate(
                                  {.bytes = rows * params::kComparisonParts * sizeof(float),
                                   .intent = MemoryIntent::kReadback,
                                   .name = "similarities"}));
  }
  return {};
}

Status StepRunner::reserve_hidden(uint32_t slot, uint32_t tokens) {
  if (hidden_) HEARTH_TRY(device_.chain().settle());
  if (tokens == 0) {
    if (hidden_) hidden_->release(slot);
    return {};
  }
  HEARTH_TRY(allocate_hidden());
  return hidden_->reserve(slot, tokens);
}

Status StepRunner::move(BlockMover& mover, std::span<const BlockMove> moves) {
  if (moves.empty()) return {};
  HEARTH_TRY(device_.chain().settle());
  return mover.move(moves);
}

void StepRunner::make_room_for_recording() {
  if (recorded_.size() < options_.most_recordings) return;
  const auto oldest = std::ranges::min_element(
      recorded_, {}, [](const auto& entry) { return entry.second.last_use; });
  Timeline& timeline = device_.compute().timeline();
  for (CommandBuffer& commands : oldest->second.commands)
    timeline.release_after(timeline.last_submitted(), std::move(commands));
  recorded_.erase(oldest);
}

Status StepRunner::check(const StepBatch& batch) const {
  const StepLimits& limits = options_.limits;
  if (batch.rows() > limits.rows || batch.members() > limits.sequences ||
      batch.padding_sequences > limits.sequences || batch.logit_rows.size() > limits.logit_rows ||
      batch.logit_rows.size() != batch.sampling.size() || batch.sequences.empty())
    return Error{
        ErrorKind::kInvalid,
        fmt::format("a step of {} tokens, {} sequences and {} logits is outside the limits "
                    "of {}, {} and {}",
                    batch.rows(), batch.sequences.size(), batch.logit_rows.size(), limits.rows,
                    limits.sequences, limits.logit_rows)};
  for (const params::StepSequence& sequence : batch.sequences)
    if (sequence.first_position + sequence.rows > limits.context)
      return Error{ErrorKind::kInvalid,
                   fmt::format("a sequence of {} tokens is longer than the context of {}",
                               sequence.first_position + sequence.rows, limits.context)};
  return check_extras(batch);
}

Status StepRunner::check_extras(const StepBatch& batch) const {
  const auto wrong = [](const char* what) {
    return Error{ErrorKind::kInvalid, std::string("a step's ") + what};
  };
  if (batch.commits.size() > batch.sequences.size())
    return wrong("commits are more than its sequences");
  for (const params::HistoryCommit& commit : batch.commits)
    if (commit.slot >= options_.slots || uint64_t{commit.first} + commit.count > batch.words.size())
      return wrong("commit refers to a slot or to tokens that do not exist");
  if (batch.pools.size() > batch.ids.size() / params::kMaxPoolRows + batch.sequences.size())
    return wrong("pooled ranges are too many");
  for (const params::PoolRange& range : batch.pools)
    if (uint64_t{range.first_row} + range.rows > batch.ids.size() || range.rows == 0 ||
        range.rows > params::kMaxPoolRows)
      return wrong("pooled rows do not exist");
  const auto has_room = [&](uint32_t slot, uint64_t tokens) {
    return hidden_ && slot < options_.slots && tokens <= hidden_->reserved(slot);
  };
  for (const KeptRows& kept : batch.kept)
    if (uint64_t{kept.first_row} + kept.rows > batch.ids.size() ||
        !has_room(kept.slot, uint64_t{kept.first_position} + kept.rows))
      return wrong("hidden states to be kept do not exist or have no room");
  for (const ComparedRow& row : batch.compared)
    if (row.logit_row >= batch.logit_rows.size() || !has_room(row.slot, row.tokens))
      return wrong("hidden states to be compared do not exist");
  const uint64_t mask_words = divide_up(model_.config().vocabulary, 32);
  for (const params::SamplingRow& row : batch.sampling) {
    if (row.path_mask != 0 &&
        uint64_t{row.path_row} + std::bit_width(row.path_mask) > batch.ids.size())
      return wrong("path refers to rows that do not exist");
    if ((row.flags & params::kSamplingMask) != 0 && row.mask + mask_words > batch.words.size())
      return wrong("sampling row refers to a mask that does not exist");
    if ((row.flags & params::kSamplingGiven) != 0 && row.given >= model_.config().vocabulary)
      return wrong("sampling row scores a token that does not exist");
    if (!refers_to_words(row, batch.words))
      return wrong("sampling row refers to DRY penalties or stages that do not exist");
    if (!is_mixed(row)) continue;
    if ((row.other_row & params::kOtherModel) != 0) {
      const uint64_t end = (row.other_row & ~params::kOtherModel) + 1;
      if (options_.other_logits == nullptr ||
          options_.other_logits->bytes() < end * model_.config().vocabulary * sizeof(float))
        return wrong("sampling row is mixed with another model's logits, which do not exist");
    } else if (row.other_row >= batch.sampling.size() ||
               (batch.sampling[row.other_row].flags & params::kSamplingActive) != 0) {
      return wrong("sampling row is mixed with one that does not exist or is sampled itself");
    }
  }
  return {};
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
  HEARTH_ASSIGN(const Recorded* step,
                preparation_ != nullptr ? recorded_or_larger(bucket) : recorded(bucket));
  return submit(batch, *step);
}

Result<std::vector<GpuSpan>> StepRunner::profile(const StepBatch& batch) {
  HEARTH_TRY(check(batch));
  HEARTH_TRY(finish(next_copy_));
  const StepBucket bucket = batch_bucket(batch);
  HEARTH_ASSIGN(const auto timer, GpuTimer::create(device_, kProfiledCommands));
  Recorded step = plan(bucket);
  HEARTH_ASSIGN(step.commands[next_copy_],
                record(pipelines_, bucket, step.layout, next_copy_, timer.get()));
  HEARTH_ASSIGN(const StepTicket ticket, submit(batch, step));
  HEARTH_TRY(wait(ticket));
  return timer->read();
}

Result<StepTicket> StepRunner::submit(const StepBatch& batch, const Recorded& step) {
  StepTicket ticket{.copy = next_copy_,
                    .logit_rows = static_cast<uint32_t>(batch.logit_rows.size()),
                    .pools = static_cast<uint32_t>(batch.pools.size())};
  for (const params::SamplingRow& row : batch.sampling) {
    ticket.with_top |= row.top_logprobs > 0;
    ticket.with_mirostat |= has_stages(row);
  }
  ticket.with_similarity = !batch.compared.empty();
  HEARTH_TRY(inputs_.write(ticket.copy, batch, step.bucket, step.layout, step.attention, windows_));
  HEARTH_ASSIGN(ticket.done, device_.compute().submit(step.commands[ticket.copy]));
  last_use_[ticket.copy] = ticket.done;
  submitted_[ticket.copy] = step.bucket;
  device_.chain().submitted(*this, ticket.copy, ticket.done);
  // Only after success: if submitting fails, the results of the other copy may not have been read
  // yet.
  next_copy_ = (next_copy_ + 1) % StepInputs::kCopies;
  return ticket;
}

Result<StepOutcome> StepRunner::wait(const StepTicket& ticket) {
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

Status StepRunner::upload(const BufferSlice& to, std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  HEARTH_TRY(device_.chain().settle());
  HEARTH_ASSIGN(Buffer staging,
                device_.memory().allocate(
                    {.bytes = bytes.size(), .intent = MemoryIntent::kUpload, .name = "slot"}));
  std::memcpy(staging.mapped(), bytes.data(), bytes.size());
  HEARTH_TRY(staging.flush());
  HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device_, {.name = "slot"}));
  recorder.copy(staging.all().slice(0, bytes.size()), to);
  HEARTH_ASSIGN(CommandBuffer commands, recorder.finish());
  Queue& queue = device_.compute();
  HEARTH_ASSIGN(const TimelinePoint done, queue.submit(commands));
  queue.timeline().release_after(done.value, std::move(commands));
  queue.timeline().release_after(done.value, std::move(staging));
  return {};
}

Status StepRunner::set_history(uint32_t slot, std::span<const params::TokenCount> tokens) {
  tokens = tokens.first(std::min<size_t>(tokens.size(), kHistoryTokens));
  const auto length = static_cast<uint32_t>(tokens.size());
  HEARTH_TRY(upload(history_lengths_.slice(slot * sizeof(uint32_t), sizeof(uint32_t)),
                    std::as_bytes(std::span(&length, 1))));
  return upload(history_.slice(uint64_t{slot} * kHistoryTokens * sizeof(params::TokenCount),
                               tokens.size_bytes()),
                std::as_bytes(tokens));
}

Status StepRunner::set_biases(uint32_t slot, std::span<const params::TokenBias> biases) {
  if (biases.size() > kMaxBiases)
    return Error{ErrorKind::kInvalid, fmt::format("{} logit biases are more than the limit of {}",
                                                  biases.size(), kMaxBiases)};
  return upload(
      biases_.slice(uint64_t{slot} * kMaxBiases * sizeof(params::TokenBias), biases.size_bytes()),
      std::as_bytes(biases));
}

}  // namespace hearth
