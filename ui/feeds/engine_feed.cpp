#include "ui/feeds/engine_feed.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hearth {
namespace {

constexpr std::chrono::milliseconds kMinSnapshotInterval(33);
// The next snapshot waits this many times as long as the last one took: 1 % of the engine's time.
constexpr int kSnapshotCostFactor = 100;

}  // namespace

void note_ended(EngineView& view) {
  for (const StepRecord& step : view.new_steps)
    for (const RequestId id : step.finished) {
      const auto ended = std::ranges::find(view.sequences, id, &SequenceView::id);
      if (ended == view.sequences.end() || ended->state == SequenceState::kEnding) continue;
      uint32_t& count = ended->state == SequenceState::kRunning   ? view.counts.running
                        : ended->state == SequenceState::kSwapped ? view.counts.swapped
                                                                  : view.counts.waiting;
      if (count > 0) --count;
      ++view.counts.ending;
      ended->state = SequenceState::kEnding;
    }
}

EngineFeed::EngineFeed(Engine& engine, EngineFacts facts)
    : engine_(engine), facts_(std::move(facts)), thread_([this] { snapshot_loop(); }) {}

EngineFeed::~EngineFeed() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EngineFeed::snapshot_loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return snapshot_wanted_ || stopping_; });
    if (stopping_) return;
    snapshot_wanted_ = false;
    lock.unlock();
    const EngineClock::time_point begin = EngineClock::now();
    EngineClock::duration spent{};
    engine_.inspect([&](const Scheduler& scheduler) {
      const EngineClock::time_point start = EngineClock::now();
      scheduler.view_blocks(working_.blocks);
      scheduler.view_sequences(working_.sequences);
      scheduler.view_block_tables(working_.block_tables);
      working_.counts = scheduler.counts();
      working_.totals = read_totals();
      working_.step = scheduler.totals().steps;
      spent = EngineClock::now() - start;
    });
    lock.lock();
    std::swap(newest_, working_);
    snapshot_ready_ = true;
    const auto next =
        begin + std::max<EngineClock::duration>(kMinSnapshotInterval, kSnapshotCostFactor * spent);
    changed_.wait_until(lock, next, [&] { return stopping_; });
  }
}

void EngineFeed::poll(EngineView& view) {
  view.connected = true;
  view.source = facts_.source;
  view.model = facts_.model;
  view.device = facts_.device;
  view.memory = facts_.memory;
  view.memory_budget_bytes = facts_.memory_budget_bytes;
  view.state = engine_.state();
  view.failure = engine_.failure();
  view.now = engine_.seconds();
  view.policy = engine_.policy();
  view.limits = engine_.limits();
  {
    const std::lock_guard lock(mutex_);
    if (snapshot_ready_) {
      std::swap(view.sequences, newest_.sequences);
      std::swap(view.blocks, newest_.blocks);
      std::swap(view.block_tables, newest_.block_tables);
      view.counts = newest_.counts;
      view.totals = newest_.totals;
      view.snapshot_step = newest_.step;
      view.has_snapshot = true;
      snapshot_ready_ = false;
    }
    snapshot_wanted_ = true;
  }
  changed_.notify_all();
  read_steps(view);
  note_ended(view);
}

// Steps that were planned after the snapshot wait for the next one, so that within a frame all
// panels show the same moment.
void EngineFeed::read_steps(EngineView& view) {
  const StepRing& records = engine_.records();
  const uint64_t end = records.written();
  view.missed_steps = 0;
  size_t count = 0;
  while (record_read_ || next_record_ < end) {
    if (!record_read_) {
      record_read_ = records.read(next_record_++, record_);
      if (!record_read_) ++view.missed_steps;
      if (!record_read_) continue;
    }
    if (record_.step > view.snapshot_step) break;
    if (view.new_steps.size() == count) view.new_steps.emplace_back();
    std::swap(view.new_steps[count++], record_);
    record_read_ = false;
  }
  view.new_steps.resize(count);
}

EngineTotals EngineFeed::read_totals() const {
  const Metrics& metrics = engine_.metrics();
  return {.requests_submitted = metrics.requests_submitted.value(),
          .requests_refused = metrics.requests_refused.value(),
          .requests_finished = metrics.finished_stop.value() + metrics.finished_length.value() +
                               metrics.finished_cancelled.value() +
                               metrics.finished_time_limit.value() + metrics.finished_error.value(),
          .prompt_tokens = metrics.prompt_tokens.value(),
          .generated_tokens = metrics.generated_tokens.value(),
          .padding_tokens = metrics.padding_tokens.value(),
          .prefix_query_tokens = metrics.prefix_query_tokens.value(),
          .prefix_hit_tokens = metrics.prefix_hit_tokens.value(),
          .preemptions_recompute = metrics.preemptions_recompute.value(),
          .preemptions_swap = metrics.preemptions_swap.value()};
}

}  // namespace hearth
