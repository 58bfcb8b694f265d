#include "ui/data/occupancy_data.h"

#include <algorithm>
#include <cmath>

namespace hearth {
namespace {

void add_share(OccupancyBucket& to, const OccupancyBucket& work, double share) {
  to.steps += share * work.steps;
  to.members += share * work.members;
  to.prompt_tokens += share * work.prompt_tokens;
  to.decode_tokens += share * work.decode_tokens;
  to.padding_tokens += share * work.padding_tokens;
  to.generated_tokens += share * work.generated_tokens;
  to.run_seconds += share * work.run_seconds;
}

void copy_gauges(OccupancyBucket& to, const OccupancyBucket& from) {
  to.running = from.running;
  to.waiting = from.waiting;
  to.swapped = from.swapped;
}

}  // namespace

double OccupancyBucket::busy_share() const {
  return to > from ? std::clamp(run_seconds / (to - from), 0.0, 1.0) : 0;
}

void OccupancyData::clear() { *this = OccupancyData(); }

void OccupancyData::restart(double seconds) {
  restart_seconds_ = seconds;
  fine_ = coarse_ = {};
  last_second_steps_.clear();
}

void OccupancyData::update(const EngineView& view) {
  if (view.generation != generation_) {
    clear();
    generation_ = view.generation;
  }
  if (view.restart != restart_) {
    restart_ = view.restart;
    restart(view.restart_seconds);
  }
  for (const StepRecord& record : view.new_steps)
    if (record.end_seconds >= restart_seconds_) add(record);
  if (view.state != EngineState::kPaused && view.connected) now_ = std::max(now_, view.now);
  counts_ = view.counts;
  max_sequences_ = view.limits.max_sequences;

  while (!last_second_steps_.empty() && last_second_steps_.front().at <= now_ - 1)
    last_second_steps_.pop_front();
  last_second_ = {};
  for (const StepWork& step : last_second_steps_) {
    last_second_.generated += step.generated;
    last_second_.prompt += step.prompt;
  }
  if (!coarse_.buckets.empty()) {
    extend_to(fine_, now_);
    extend_to(coarse_, now_);
    // No step record follows the end of the last request.
    if (view.new_steps.empty())
      for (Series* series : {&fine_, &coarse_}) {
        OccupancyBucket& last = series->buckets.back();
        last.running = counts_.running;
        last.waiting = counts_.waiting;
        last.swapped = counts_.swapped;
      }
  }
  while (!fine_.buckets.empty() && fine_.buckets.front().to < now_ - kFineSpan)
    fine_.buckets.pop_front();
  while (coarse_.buckets.size() > kMaxCoarseBuckets) double_bucket_width(coarse_);

  memory_.parts = view.memory;
  memory_.budget_bytes = view.memory_budget_bytes;
  memory_.used_bytes = 0;
  for (const MemoryPart& part : view.memory) memory_.used_bytes += part.bytes;
}

void OccupancyData::add(const StepRecord& record) {
  now_ = std::max(now_, record.end_seconds);
  batch_ = static_cast<uint32_t>(record.members.size());
  OccupancyBucket work{.from = record.end_seconds - std::max(record.run_seconds, 0.0),
                       .to = record.end_seconds,
                       .steps = 1,
                       .members = static_cast<double>(record.members.size()),
                       .padding_tokens = static_cast<double>(record.padding_tokens),
                       .generated_tokens = static_cast<double>(record.sampled_tokens),
                       .run_seconds = record.run_seconds,
                       .running = record.counts.running,
                       .waiting = record.counts.waiting,
                       .swapped = record.counts.swapped};
  for (const StepMember& member : record.members)
    (member.phase == StepPhase::kPrompt ? work.prompt_tokens : work.decode_tokens) += member.tokens;
  last_second_steps_.push_back({record.end_seconds, work.generated_tokens, work.prompt_tokens});
  add_work(fine_, work);
  add_work(coarse_, work);
}

// Appends buckets up to this time, carrying the gauges over. After an idle period longer than the
// fine series covers, that series starts over.
void OccupancyData::extend_to(Series& series, double until) {
  const double width = series.width;
  if (!series.buckets.empty() && until - series.buckets.back().to > 2 * kFineSpan &&
      width == kFineSeconds) {
    OccupancyBucket last = series.buckets.back();
    series.buckets.clear();
    const double from = std::floor((until - kFineSpan) / width) * width;
    OccupancyBucket& first = series.buckets.emplace_back();
    first.from = from;
    first.to = from + width;
    copy_gauges(first, last);
  }
  if (series.buckets.empty()) {
    const double from = std::floor(until / width) * width;
    series.buckets.push_back({.from = from, .to = from + width});
  }
  while (series.buckets.back().to <= until) {
    const OccupancyBucket before = series.buckets.back();
    OccupancyBucket& next = series.buckets.emplace_back();
    next.from = before.to;
    next.to = before.to + width;
    copy_gauges(next, before);
  }
}

void OccupancyData::add_work(Series& series, const OccupancyBucket& work) {
  if (series.buckets.empty()) extend_to(series, work.from);
  extend_to(series, work.to);
  copy_gauges(series.buckets.back(), work);
  const double length = work.to - work.from;
  double left = 1;
  for (size_t i = series.buckets.size(); i-- > 0;) {
    OccupancyBucket& bucket = series.buckets[i];
    const double overlap = std::min(bucket.to, work.to) - std::max(bucket.from, work.from);
    // The first bucket takes the remainder, including work from before it.
    const bool last = i == 0 || bucket.from <= work.from;
    const double share =
        last ? left : std::min(left, length > 0 ? std::max(overlap, 0.0) / length : 0);
    add_share(bucket, work, share);
    left -= share;
    if (last) break;
  }
}

void OccupancyData::double_bucket_width(Series& series) {
  Series wider{.width = series.width * 2};
  for (const OccupancyBucket& bucket : series.buckets) {
    const double from = std::floor(bucket.from / wider.width) * wider.width;
    if (wider.buckets.empty() || wider.buckets.back().from != from)
      wider.buckets.push_back({.from = from, .to = from + wider.width});
    add_share(wider.buckets.back(), bucket, 1);
    copy_gauges(wider.buckets.back(), bucket);
  }
  series = std::move(wider);
}

double OccupancyData::from(Window window) const {
  const std::deque<OccupancyBucket>& buckets = series(window);
  const double first = buckets.empty() ? 0 : buckets.front().from;
  return window == Window::kAll ? first : std::max(first, now_ - kFineSpan);
}

double OccupancyData::span(Window window) const {
  constexpr double kMinSeconds = 5;
  return std::max(now_ - from(window), kMinSeconds);
}

OccupancyBucket OccupancyData::sum(Window window) const {
  const std::deque<OccupancyBucket>& buckets = series(window);
  OccupancyBucket sum;
  if (buckets.empty()) return sum;
  for (const OccupancyBucket& bucket : buckets) add_share(sum, bucket, 1);
  copy_gauges(sum, buckets.back());
  sum.from = std::max(buckets.front().from, restart_seconds_);
  sum.to = std::max(now_, sum.from);
  return sum;
}

}  // namespace hearth
