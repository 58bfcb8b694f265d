#include "ui/data/view_history.h"

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

size_t bytes_of(const StepRecord& record) {
  return sizeof(StepRecord) + record.members.size() * sizeof(StepMember) +
         record.arrived.size() * sizeof(StepRecord::Arrival) +
         (record.admitted.size() + record.finished.size()) * sizeof(RequestId) +
         record.prefix_hits.size() * sizeof(BatchPlan::PrefixHit);
}

size_t bytes_of(const RecordedMoment& moment) {
  return sizeof(RecordedMoment) + moment.sequences.size() * sizeof(SequenceView) +
         moment.changed.size() * sizeof(moment.changed[0]);
}

void apply_changes(const RecordedMoment& moment, std::vector<BlockView>& blocks) {
  blocks.resize(moment.blocks);
  for (const auto& [index, block] : moment.changed)
    if (index < blocks.size()) blocks[index] = block;
}

}  // namespace

bool same_block(const BlockView& a, const BlockView& b) {
  return a.state == b.state && a.owner == b.owner && a.references == b.references &&
         a.filled == b.filled && a.hash == b.hash;
}

void ViewHistory::clear() { *this = ViewHistory(); }

void ViewHistory::set_names(std::string source, std::string model, std::string device) {
  source_ = std::move(source);
  model_ = std::move(model);
  device_ = std::move(device);
}

void ViewHistory::add(const EngineView& view, uint64_t engine) {
  if (engine != engine_) {
    clear();
    engine_ = engine;
  }
  if (!view.connected) return;
  set_names(view.source, view.model, view.device);
  memory_ = view.memory;
  memory_budget_bytes_ = view.memory_budget_bytes;
  // Nothing has happened since the last moment.
  if (view.new_steps.empty() && !moments_.empty()) {
    const RecordedMoment& last = moments_.back();
    if (last.state == view.state && last.policy == view.policy && last.counts == view.counts &&
        last.restart == view.restart && last.snapshot_step == view.snapshot_step &&
        last.has_snapshot == view.has_snapshot)
      return;
  }
  RecordedMoment moment{.now = view.now,
                        .state = view.state,
                        .policy = view.policy,
                        .limits = view.limits,
                        .counts = view.counts,
                        .totals = view.totals,
                        .restart = view.restart,
                        .restart_seconds = view.restart_seconds,
                        .has_snapshot = view.has_snapshot,
                        .snapshot_step = view.snapshot_step,
                        .sequences = view.sequences,
                        .changed = {},
                        .blocks = static_cast<uint32_t>(view.blocks.size())};
  const bool resized = newest_blocks_.size() != view.blocks.size();
  for (size_t i = 0; i < view.blocks.size(); ++i)
    if (resized || !same_block(view.blocks[i], newest_blocks_[i]))
      moment.changed.emplace_back(static_cast<uint32_t>(i), view.blocks[i]);
  add(view.new_steps, std::move(moment), view.missed_steps);
}

void ViewHistory::add(std::vector<StepRecord> steps, RecordedMoment moment, uint64_t missed) {
  for (StepRecord& record : steps) {
    bytes_ += bytes_of(record);
    steps_.push_back({std::move(record), std::exchange(missed, 0)});
  }
  moment.end = end();
  apply_changes(moment, newest_blocks_);
  if (moments_.empty()) {
    first_blocks_ = newest_blocks_;
    moment.changed.clear();
  }
  bytes_ += bytes_of(moment);
  moments_.push_back(std::move(moment));
  drop_old();
}

void ViewHistory::drop_old() {
  while (steps_.size() > 1 && (steps_.size() > kSteps || bytes_ > kMaxBytes)) {
    bytes_ -= bytes_of(steps_.front().record);
    steps_.pop_front();
    ++first_;
  }
  // One moment from before the first step is kept: what was known with it.
  while (moments_.size() > 1 && moments_[1].end <= first_) {
    bytes_ -= bytes_of(moments_.front());
    moments_.pop_front();
    ++first_moment_;
    RecordedMoment& first = moments_.front();
    apply_changes(first, first_blocks_);
    bytes_ -= bytes_of(first);
    first.changed.clear();
    bytes_ += bytes_of(first);
  }
}

uint64_t ViewHistory::step_at(double seconds) const {
  const auto place =
      std::ranges::upper_bound(steps_, seconds, {}, [](const Step& step) -> double {
        return step.record.end_seconds;
      });
  return first_ + static_cast<uint64_t>(place - steps_.begin());
}

void ViewHistory::show(uint64_t end, EngineView& view) {
  // The last moment that knew no later step.
  auto place = std::ranges::upper_bound(moments_, end, {}, &RecordedMoment::end);
  if (place != moments_.begin()) --place;
  const auto index = static_cast<uint64_t>(place - moments_.begin());
  const RecordedMoment& moment = *place;
  uint64_t from = 0;
  if (shown_ != UINT64_MAX && shown_ >= first_moment_ && shown_ <= first_moment_ + index)
    from = shown_ - first_moment_ + 1;
  else
    shown_blocks_ = first_blocks_;
  for (uint64_t i = from; i <= index; ++i) apply_changes(moments_[i], shown_blocks_);
  shown_ = first_moment_ + index;

  view.connected = true;
  view.source = source_;
  view.model = model_;
  view.device = device_;
  view.memory = memory_;
  view.memory_budget_bytes = memory_budget_bytes_;
  view.failure.clear();
  view.state = EngineState::kPaused;
  view.policy = moment.policy;
  view.limits = moment.limits;
  view.totals = moment.totals;
  view.restart = moment.restart;
  view.restart_seconds = moment.restart_seconds;
  // A moment may be older than the newest of the steps.
  const StepRecord& newest = step(end - 1);
  view.now = std::max(moment.end == end ? moment.now : 0.0, newest.end_seconds);
  view.counts = moment.end == end ? moment.counts : newest.counts;
  view.has_snapshot = moment.has_snapshot;
  view.snapshot_step = moment.snapshot_step;
  view.sequences = moment.sequences;
  view.block_tables.clear();
  view.blocks = shown_blocks_;
  for (BlockView& block : view.blocks)
    if (block.state == BlockState::kOwned) block.last_use = moment.snapshot_step;
}

}  // namespace hearth
