#include "engine/publisher.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace hearth {
namespace {

// Keeps the capacity of `to`.
template <class T>
void copy_list(const std::vector<T>& from, std::vector<T>& to) {
  to.assign(from.begin(), from.end());
}

Counter& finished_counter(Metrics& metrics, FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return metrics.finished_stop;
    case FinishReason::kLength:
      return metrics.finished_length;
    case FinishReason::kCancelled:
      return metrics.finished_cancelled;
    case FinishReason::kTimeLimit:
      return metrics.finished_time_limit;
    case FinishReason::kNone:
    case FinishReason::kError:
      break;
  }
  return metrics.finished_error;
}

}  // namespace

Publisher::Publisher(size_t records, size_t sequences, const TimeSource& time)
    : time_(time), created_at_(time.now()), records_(records, sequences) {}

double Publisher::seconds_at(EngineClock::time_point time) const {
  return std::chrono::duration<double>(time - created_at_).count();
}

void Publisher::read_gauges(SchedulerCounts& counts) const {
  const auto read = [](const Counter& gauge) { return static_cast<uint32_t>(gauge.value()); };
  counts.running = read(metrics_.running);
  counts.waiting = read(metrics_.waiting);
  counts.swapped = read(metrics_.swapped);
  counts.blocks_used = read(metrics_.kv_blocks_used);
  counts.blocks_cached = read(metrics_.kv_blocks_cached);
  counts.blocks_free = read(metrics_.kv_blocks_free);
}

void Publisher::admitted(const ActiveRequest& request) {
  metrics_.queue_seconds.add(request.times().admitted);
}

void Publisher::judged(size_t proposed, size_t accepted) {
  metrics_.proposed_tokens.add(proposed);
  metrics_.accepted_tokens.add(accepted);
  metrics_.judged_steps.add();
  for (size_t i = 0; i < proposed; ++i) {
    const size_t place = std::min(i, Metrics::kProposalPlaces - 1);
    metrics_.proposed_at[place].add();
    if (i < accepted) metrics_.accepted_at[place].add();
  }
}

void Publisher::delivered_token(const ActiveRequest& request) {
  if (request.delivered_tokens() == 1)
    metrics_.time_to_first_token_seconds.add(request.times().first_token);
  else if (request.token_gap())
    metrics_.time_between_tokens_seconds.add(*request.token_gap());
}

void Publisher::ended(const ActiveRequest& request, FinishReason reason) {
  finished_counter(metrics_, reason).add();
  const GenerationTimes& times = request.times();
  metrics_.end_to_end_seconds.add(times.finished);
  if (request.delivered_tokens() > 1)
    metrics_.time_per_output_token_seconds.add((times.last_token - times.first_token) /
                                               (request.delivered_tokens() - 1));
}

void Publisher::show_counts(const SchedulerCounts& counts) {
  // Callers add to `waiting` at the same time, so this adds the difference, which may be negative:
  // unsigned numbers wrap around to the right sum.
  metrics_.waiting.add(uint64_t{counts.waiting} - shown_waiting_);
  shown_waiting_ = counts.waiting;
  metrics_.running.set(counts.running);
  metrics_.swapped.set(counts.swapped);
  metrics_.kv_blocks_used.set(counts.blocks_used);
  metrics_.kv_blocks_cached.set(counts.blocks_cached);
  metrics_.kv_blocks_free.set(counts.blocks_free);
}

void Publisher::publish(const StepRecord& record, const SchedulerTotals& totals) {
  metrics_.steps.add();
  metrics_.padding_tokens.add(record.padding_tokens);
  for (const StepMember& member : record.members)
    if (member.phase == StepPhase::kPrompt) metrics_.prompt_tokens.add(member.tokens);
  metrics_.prefix_query_tokens.set(totals.prefix_query_tokens);
  metrics_.prefix_hit_tokens.set(totals.prefix_hit_tokens);
  metrics_.preemptions_recompute.set(totals.preemptions_recompute);
  metrics_.preemptions_swap.set(totals.preemptions_swap);
  metrics_.blocks_copied.add(record.blocks_copied);
  metrics_.blocks_swapped_out.add(record.blocks_swapped_out);
  metrics_.blocks_swapped_in.add(record.blocks_swapped_in);
  metrics_.tokens_per_step.add(record.tokens);
  metrics_.step_seconds.add(record.run_seconds);
  records_.publish([&](StepRecord& published) { published = record; });
}

void describe_plan(const BatchPlan& plan, const SchedulerCounts& counts, StepRecord& record) {
  record.step = plan.step;
  record.members.clear();
  record.tokens = plan.tokens();
  record.padding_tokens = plan.padding_tokens;
  record.sampled_tokens = 0;
  for (const BatchMember& member : plan.members) {
    record.members.push_back({.request = member.request,
                              .slot = member.slot,
                              .phase = member.decodes ? StepPhase::kDecode : StepPhase::kPrompt,
                              .first_position = member.first_position,
                              .tokens = member.tokens,
                              .samples = member.samples && !member.shadow,
                              .proposed = member.proposed});
    if (member.samples && !member.shadow) ++record.sampled_tokens;
  }
  copy_list(plan.admitted, record.admitted);
  copy_list(plan.preempted_recompute, record.preempted_recompute);
  copy_list(plan.preempted_swap, record.preempted_swap);
  copy_list(plan.prefix_hits, record.prefix_hits);
  record.blocks_swapped_out = static_cast<uint32_t>(plan.swap_out.size());
  record.blocks_swapped_in = static_cast<uint32_t>(plan.swap_in.size());
  record.blocks_copied = static_cast<uint32_t>(plan.copies.size());
  record.counts = counts;
}

}  // namespace hearth
