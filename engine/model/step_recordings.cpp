// Which recording a step replays: that of its bucket, or, while kernels of its bucket are being
// compiled, that of a larger one.
#include <algorithm>
#include <tuple>

#include "engine/model/step_runner.h"
#include "runtime/device.h"
#include "runtime/pipeline_collector.h"
#include "runtime/queue.h"
#include "runtime/ready_pipelines.h"

namespace hearth {
namespace {

// The time that a step takes grows with these, and most with the first.
auto step_cost(const StepBucket& bucket) {
  return std::tuple(bucket.rows, bucket.logit_rows, bucket.sequences, bucket.context);
}

}  // namespace

std::vector<PipelineInfo> StepRunner::pipelines_of(const StepBucket& bucket) const {
  PipelineCollector collector;
  CommandRecorder recorder = CommandRecorder::dry();
  const Buffer any = Buffer::of_any_size();  // allocated by the first step that needs them
  const StepPlan plan = planner_->plan_distinct(bucket);
  const std::vector<PlanSegment> segments = cut_at_meetings(plan);
  // An error shows when the step is recorded.
  for (size_t i = 0; i < segments.size(); ++i) {
    if (!has_commands(segments[i])) continue;
    static_cast<void>(record_segment({recorder, collector, plan, 0}, segments, i,
                                     {.pooled = any, .similarity = any, .pages = {any.all()}})
                          .ok());
  }
  return collector.infos();
}

void StepRunner::make_room_for_recording() {
  if (recorded_.size() < options_.most_recordings) return;
  const auto oldest = std::ranges::min_element(
      recorded_, {}, [](const auto& entry) { return entry.second.last_use; });
  Timeline& timeline = device_.compute().timeline();
  for (std::vector<CommandBuffer>& commands : oldest->second.commands)
    timeline.release_after(timeline.last_submitted(), std::move(commands));
  recorded_.erase(oldest);
}

Result<const StepRunner::Recorded*> StepRunner::record_with(PipelineStore& pipelines,
                                                            const StepBucket& bucket) {
  const StepPlan plan = planner_->plan(bucket);
  Recorded step(plan);
  for (const PlanSegment& segment : cut_at_meetings(plan))
    if (segment.meeting) step.meetings.push_back(*segment.meeting);
  for (size_t copy = 0; copy < StepInputs::kCopies; ++copy) {
    HEARTH_ASSIGN(step.commands[copy], record(pipelines, plan, copy));
  }
  make_room_for_recording();
  Recorded& place = recorded_.emplace(bucket, std::move(step)).first->second;
  place.last_use = ++steps_;
  return &place;
}

Result<const StepRunner::Recorded*> StepRunner::recorded(const StepBucket& bucket) {
  const auto place = recorded_.find(bucket);
  if (place == recorded_.end()) return record_with(pipelines_, bucket);
  place->second.last_use = ++steps_;
  return &place->second;
}

Status StepRunner::finish(size_t copy) {
  Queue& queue = device_.compute();
  if (last_use_[copy].timeline == nullptr) return {};
  HEARTH_TRY(queue.wait(last_use_[copy]));
  if (model_.config().meets_ranks()) return {};  // its steps are not chains
  HEARTH_TRY(device_.chain().check(last_use_[copy]));
  return queue.wait(last_use_[copy]);  // if check() ran it again
}

Status StepRunner::leave_failed_chain() {
  if (chained_ == device_.chain().usable()) return {};
  chained_ = false;
  Timeline& timeline = device_.compute().timeline();
  for (auto& [bucket, step] : recorded_)
    for (std::vector<CommandBuffer>& commands : step.commands)
      timeline.release_after(timeline.last_submitted(), std::move(commands));
  recorded_.clear();
  return activations_.clear_counts(device_);
}

// Its kernels are compiled, and its input is where it was.
Status StepRunner::rerun(size_t copy) {
  HEARTH_TRY(leave_failed_chain());
  HEARTH_ASSIGN(const Recorded* step, recorded(submitted_[copy]));
  return run_segments(*step, copy);
}

Result<const StepRunner::Recorded*> StepRunner::recorded_if_ready(const StepBucket& bucket) {
  if (recorded_.contains(bucket)) return recorded(bucket);
  if (const auto waiting = waiting_.find(bucket); waiting != waiting_.end()) {
    const auto is_ready = [&](const PipelineInfo& info) {
      return pipelines_.find(info) != nullptr;
    };
    if (!std::ranges::all_of(waiting->second, is_ready)) return nullptr;
    waiting_.erase(waiting);
  }
  ReadyPipelines ready(pipelines_);
  Result<const Recorded*> step = record_with(ready, bucket);
  if (step.ok() || !ready.missed()) return step;
  waiting_[bucket] = {*ready.missed()};
  return nullptr;
}

const StepRunner::Recorded* StepRunner::cheapest_recorded(const StepBucket& bucket) const {
  const Recorded* cheapest = nullptr;
  for (const auto& [other, step] : recorded_)
    if (fits_into(bucket, other) &&
        (cheapest == nullptr || step_cost(other) < step_cost(cheapest->bucket)))
      cheapest = &step;
  return cheapest;
}

Result<const StepRunner::Recorded*> StepRunner::recorded_or_larger(const StepBucket& bucket) {
  HEARTH_ASSIGN(const Recorded* step, recorded_if_ready(bucket));
  if (step != nullptr) return step;
  // All that is missing, and not only what was missed first, is wanted now.
  if (std::vector<PipelineInfo>& missing = waiting_[bucket]; missing.size() <= 1) {
    missing = pipelines_of(bucket);
    std::erase_if(missing,
                  [&](const PipelineInfo& info) { return pipelines_.find(info) != nullptr; });
    preparation_->hurry(missing);
  }
  const Recorded* larger = cheapest_recorded(bucket);
  for (const StepBucket& stand_in : stand_in_buckets(bucket, options_.limits)) {
    if (larger != nullptr && step_cost(larger->bucket) <= step_cost(stand_in)) break;
    HEARTH_ASSIGN(step, recorded_if_ready(stand_in));
    if (step != nullptr) return step;
  }
  if (larger != nullptr) return recorded(larger->bucket);
  // Only if the preparation's minimum was not waited for, or could not be compiled.
  ++stalled_steps_;
  HEARTH_TRY(pipelines_.prepare(pipelines_of(bucket)));
  return recorded(bucket);
}

}  // namespace hearth
