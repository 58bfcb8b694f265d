#include "ui/data/lesson_player.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tools/lessons/lesson_plan.h"
#include "tools/replay/prompt_maker.h"

namespace hearth {
namespace {

bool is_busy(Engine& engine) {
  const auto any = [](const SchedulerCounts& counts) {
    return counts.running + counts.waiting + counts.swapped + counts.ending > 0;
  };
  SchedulerCounts counts;
  engine.read_gauges(counts);
  if (any(counts)) return true;
  // These may be a moment old: a request may have just been submitted, or the record of the last
  // one not be written yet. The engine thread does both before it looks.
  bool busy = false;
  engine.inspect([&](const Scheduler& scheduler) { busy = any(scheduler.counts()); });
  return busy;
}

}  // namespace

std::string why_not_live(const Lesson& lesson, const LessonStage& stage) {
  if (stage.engine == nullptr) return "There is no engine here that can be controlled.";
  if (!changes_only_scheduling(lesson))
    return "The runs change the model or the decoding, which an engine cannot do while it runs.";
  const SchedulerLimits& most = stage.engine->initial_limits();
  for (const LessonRun& run : lesson.runs) {
    const LessonSettings& wanted = run.settings;
    if (wanted.max_sequences > most.max_sequences)
      return fmt::format("The lesson needs {} sequences, and this engine has {}.",
                         wanted.max_sequences, most.max_sequences);
    if (wanted.max_step_tokens > most.max_step_tokens)
      return fmt::format("The lesson needs steps of {} tokens, and this engine has {}.",
                         wanted.max_step_tokens, most.max_step_tokens);
    if (wanted.kv_blocks > most.pool_blocks)
      return fmt::format("The lesson needs {} KV blocks, and this engine has {}.", wanted.kv_blocks,
                         most.pool_blocks);
    if (plan_lesson_run(run, most).policy.preemption == Preemption::kSwap && most.swap_blocks == 0)
      return "The lesson swaps, and this engine has no host memory for that.";
  }
  return {};
}

void LessonPlayer::start(const Lesson& lesson, const LessonStage& stage) {
  lesson_ = &lesson;
  generation_ = stage.generation;
  old_policy_ = stage.engine->policy();
  old_limits_ = stage.engine->limits();
  results_ = {.simulated = stage.modelled, .model = stage.model, .device = stage.device};
  outcome_.reset();
  run_ = round_ = 0;
  rounds_ = stage.modelled ? 1 : 2;
  started_ = false;
}

void LessonPlayer::stop(const LessonStage& stage) {
  if (!running()) return;
  const bool same = stage.generation == generation_;
  end(same ? stage.engine : nullptr, invalid("The lesson was stopped."));
}

// Drops what is left of the run.
void LessonPlayer::end(Engine* engine, Result<LessonResults> results) {
  streams_.clear();
  lesson_ = nullptr;
  outcome_.emplace(std::move(results));
  if (engine == nullptr) return;
  engine->set_policy(old_policy_);
  engine->set_limits(old_limits_.max_sequences, old_limits_.max_step_tokens,
                     old_limits_.pool_blocks);
}

std::optional<Result<LessonResults>> LessonPlayer::take_results() {
  return std::exchange(outcome_, std::nullopt);
}

std::string LessonPlayer::status() const {
  if (!running()) return {};
  const std::string run =
      fmt::format("run {} ({} of {})", lesson_->runs[run_].name, run_ + 1, lesson_->runs.size());
  if (!started_) return run + ": waiting for other requests to end";
  return warming() ? "warming up for " + run : run;
}

double LessonPlayer::progress() const {
  if (!running()) return 0;
  const auto rounds = static_cast<double>(lesson_->runs.size() * rounds_);
  const double share = trace_.requests.empty() ? 0
                                               : static_cast<double>(finished_) /
                                                     static_cast<double>(trace_.requests.size());
  return (static_cast<double>(run_ * rounds_ + round_) + (started_ ? share : 0)) / rounds;
}

void LessonPlayer::update(const LessonStage& stage, bool slowed) {
  if (!running()) return;
  if (stage.generation != generation_ || stage.engine == nullptr)
    return end(nullptr, invalid("The engine was closed before the lesson was over."));
  Engine& engine = *stage.engine;
  if (engine.state() == EngineState::kFailed)
    return end(nullptr, Error{ErrorKind::kDeviceLost, engine.failure()});
  if (!started_) {
    if (slowed || is_busy(engine)) return;
    begin_run(stage);
  }
  slowed_ = slowed_ || slowed;
  submit_arrived(engine);
  if (!running()) return;
  read_records(engine);
  if (finished_ == trace_.requests.size()) finish_run(stage);
}

void LessonPlayer::begin_run(const LessonStage& stage) {
  Engine& engine = *stage.engine;
  const LessonRun& run = lesson_->runs[run_];
  const PlannedReplay planned = plan_lesson_run(run, engine.initial_limits());
  engine.set_policy(planned.policy);
  engine.set_limits(planned.limits.max_sequences, planned.limits.max_step_tokens,
                    planned.limits.pool_blocks);
  trace_ = lesson_trace(*lesson_, run, results_.simulated);
  const uint64_t pool_tokens = uint64_t{planned.limits.pool_blocks} * kTokensPerBlock;
  clip_lengths(trace_,
               static_cast<uint32_t>(std::min<uint64_t>(planned.limits.context, pool_tokens)));
  const PromptMaker maker(text_token_ids(stage.tokenizer, std::max(1u, engine.vocabulary())),
                          ++prompt_seed_);
  prompts_.clear();
  for (size_t i = 0; i < trace_.requests.size(); ++i)
    prompts_.push_back(maker.make(trace_.requests[i], i));
  streams_.clear();
  tally_ = {};
  finished_ = 0;
  blocks_swapped_out_ = blocks_swapped_in_ = 0;
  slowed_ = disturbed_ = false;
  next_record_ = engine.records().written();
  query_tokens_ = engine.metrics().prefix_query_tokens.value();
  hit_tokens_ = engine.metrics().prefix_hit_tokens.value();
  begin_ = engine.seconds();
  started_ = true;
}

void LessonPlayer::submit_arrived(Engine& engine) {
  const ReplayInput input{.trace = trace_, .prompts = prompts_, .begin = {}, .step = {}};
  if (const Status status = submit_due(engine, input, engine.seconds() - begin_, streams_);
      !status.ok())
    return end(&engine, status.error());
  if (std::ranges::any_of(streams_, [](const auto& stream) { return !stream.has_value(); }))
    end(&engine, invalid("The engine refused a request, so nothing was measured."));
}

void LessonPlayer::read_records(Engine& engine) {
  const auto is_ours = [&](RequestId request) {
    return std::ranges::any_of(
        streams_, [&](const auto& stream) { return stream && stream->request() == request; });
  };
  StepRecord record;
  for (const uint64_t written = engine.records().written(); next_record_ < written;
       ++next_record_) {
    if (!engine.records().read(next_record_, record)) {
      disturbed_ = true;
      continue;
    }
    tally_.add(record);
    blocks_swapped_out_ += record.blocks_swapped_out;
    blocks_swapped_in_ += record.blocks_swapped_in;
    for (const StepRecord::Arrival& arrival : record.arrived)
      disturbed_ = disturbed_ || !is_ours(arrival.request);
    for (const RequestId request : record.finished) finished_ += is_ours(request) ? 1 : 0;
  }
}

void LessonPlayer::finish_run(const LessonStage& stage) {
  Engine& engine = *stage.engine;
  if (slowed_)
    return end(&engine, invalid("The engine was paused or in slow motion during the lesson, so "
                                "nothing was measured."));
  if (disturbed_)
    return end(&engine, invalid("Other requests ran at the same time, so nothing was measured."));
  // The last step's record is published before this runs.
  engine.inspect([](const Scheduler&) {});
  read_records(engine);
  Result<ReplayRun> run = collect_run(engine, trace_, begin_, streams_, tally_);
  if (!run.ok()) return end(&engine, run.error());
  run->query_tokens -= query_tokens_;
  run->hit_tokens -= hit_tokens_;
  run->swaps.out_bytes =
      static_cast<uint64_t>(static_cast<double>(blocks_swapped_out_) * stage.kv_bytes_per_block);
  run->swaps.in_bytes =
      static_cast<uint64_t>(static_cast<double>(blocks_swapped_in_) * stage.kv_bytes_per_block);
  streams_.clear();
  started_ = false;
  if (++round_ < rounds_) return;
  round_ = 0;
  LessonRunResult result{.name = lesson_->runs[run_].name};
  result.report = make_report(*run, lesson_->goal_on(results_.simulated));
  result.report.policy = result.name;
  result.weight_bytes = stage.weight_bytes;
  results_.runs.push_back(std::move(result));
  if (++run_ == lesson_->runs.size()) end(&engine, std::move(results_));
}

}  // namespace hearth
