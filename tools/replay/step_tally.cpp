#include "tools/replay/step_tally.h"

#include <utility>

namespace hearth {
namespace {

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

double StepUse::occupancy(uint32_t max_sequences) const {
  return share(member_seconds, busy_seconds * max_sequences);
}

double StepUse::busy_share(double begin_seconds) const {
  return share(busy_seconds, last_end_seconds - begin_seconds);
}

double StepUse::padding_share() const {
  return share(static_cast<double>(padding_tokens), static_cast<double>(tokens + padding_tokens));
}

double StepUse::kv_used_share(uint32_t pool_blocks) const {
  return share(blocks_used_seconds, busy_seconds * pool_blocks);
}

double StepUse::kv_waste_share() const {
  return share(wasted_token_seconds, kv_token_seconds + wasted_token_seconds);
}

double StepUse::kv_shared_share() const {
  return share(blocks_shared_seconds, blocks_used_seconds);
}

double StepUse::wasted_tokens_per_sequence() const {
  return share(wasted_token_seconds, running_seconds);
}

void StepTally::add(const StepRecord& record) {
  ++use_.steps;
  use_.tokens += record.tokens;
  use_.padding_tokens += record.padding_tokens;
  use_.preemptions_recompute += record.preempted_recompute.size();
  use_.preemptions_swap += record.preempted_swap.size();
  const double seconds = record.run_seconds;
  const SchedulerCounts& counts = record.counts;
  use_.busy_seconds += seconds;
  use_.last_end_seconds = record.end_seconds;
  use_.member_seconds += seconds * static_cast<double>(record.members.size());
  use_.running_seconds += seconds * counts.running;
  use_.blocks_used_seconds += seconds * counts.blocks_used;
  use_.blocks_shared_seconds += seconds * counts.blocks_shared;
  use_.kv_token_seconds += seconds * static_cast<double>(counts.kv_tokens);
  use_.wasted_token_seconds += seconds * static_cast<double>(counts.wasted_tokens);
  for (const StepRecord::Arrival& arrival : record.arrived)
    submit_times_[arrival.request] = arrival.seconds;
  for (const StepMember& member : record.members)
    if (member.samples) token_times_[member.request].push_back(record.end_seconds);
}

std::vector<double> StepTally::take_token_times(RequestId request) {
  const auto place = token_times_.find(request);
  return place == token_times_.end() ? std::vector<double>() : std::move(place->second);
}

}  // namespace hearth
