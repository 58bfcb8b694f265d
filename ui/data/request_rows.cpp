#include "ui/data/request_rows.h"

#include <algorithm>

namespace hearth {

namespace {

// Where requests in this state come in the table: running ones first, ended ones last. Prefill and
// decode share a place, so that rows stay where they are from step to step.
double state_place(RequestState state) {
  switch (state) {
    case RequestState::kPrefill:
    case RequestState::kDecode:
      return 0;
    case RequestState::kPreempted:
    case RequestState::kSwapped:
      return 1;
    case RequestState::kWaiting:
      return 2;
    case RequestState::kFinished:
      return 3;
    case RequestState::kCancelled:
      return 4;
  }
  return 5;
}

}  // namespace

const char* request_state_name(RequestState state) {
  switch (state) {
    case RequestState::kWaiting:
      return "waiting";
    case RequestState::kPrefill:
      return "prefill";
    case RequestState::kDecode:
      return "decode";
    case RequestState::kPreempted:
      return "preempted";
    case RequestState::kSwapped:
      return "swapped";
    case RequestState::kFinished:
      return "finished";
    case RequestState::kCancelled:
      return "cancelled";
  }
  return "";
}

float RequestRow::progress() const {
  if (state == RequestState::kFinished) return 1;
  return max_tokens == 0 ? 0 : static_cast<float>(computed) / static_cast<float>(max_tokens);
}

double RequestRow::waited(double now) const {
  if (arrived < 0) return -1;
  const double end = admitted >= 0 ? admitted : ended >= 0 ? ended : now;
  return std::max(0.0, end - arrived);
}

double RequestRow::running(double now) const {
  if (admitted < 0) return -1;
  return std::max(0.0, (ended >= 0 ? ended : now) - admitted);
}

double RequestRow::total(double now) const {
  if (arrived < 0) return -1;
  return std::max(0.0, (ended >= 0 ? ended : now) - arrived);
}

RequestRow& RequestRows::row(RequestId id) {
  RequestRow& row = rows_[id];
  row.id = id;
  return row;
}

const RequestRow* RequestRows::find(RequestId id) const {
  const auto found = rows_.find(id);
  return found == rows_.end() ? nullptr : &found->second;
}

size_t RequestRows::count(RequestState state) const {
  return static_cast<size_t>(
      std::ranges::count_if(rows_, [&](const auto& entry) { return entry.second.state == state; }));
}

void RequestRows::note_cancel(RequestId id) {
  if (const auto found = rows_.find(id); found != rows_.end())
    found->second.cancel_requested = true;
}

void RequestRows::note_priority(RequestId id, int32_t priority) {
  if (const auto found = rows_.find(id); found != rows_.end()) found->second.priority = priority;
}

void RequestRows::update(const EngineView& view) {
  if (view.generation != generation_) {
    rows_.clear();
    generation_ = view.generation;
  }
  // A request that ended during missed steps is never mentioned again, so all are considered ended;
  // those still running reappear with their next step.
  if (view.missed_steps > 0 && !view.has_snapshot)
    for (auto& [id, one] : rows_)
      if (!has_ended(one.state)) mark_ended(one, one.last_token >= 0 ? one.last_token : view.now);
  for (const StepRecord& record : view.new_steps) add(record);
  if (view.has_snapshot) apply_snapshot(view);
  drop_old();
}

void RequestRows::add(const StepRecord& record) {
  const auto touch_row = [&](RequestId id) -> RequestRow& {
    RequestRow& one = row(id);
    one.seen_step = std::max(one.seen_step, record.step);
    return one;
  };
  for (const StepRecord::Arrival& arrival : record.arrived) {
    RequestRow& one = touch_row(arrival.request);
    one.arrived = arrival.seconds;
    one.prompt_tokens = arrival.prompt_tokens;
    one.max_tokens = arrival.max_tokens;
    one.known = std::max(one.known, arrival.prompt_tokens);
  }
  for (const RequestId id : record.admitted) {
    RequestRow& one = touch_row(id);
    if (one.admitted < 0) one.admitted = record.begin_seconds;
  }
  for (const BatchPlan::PrefixHit& hit : record.prefix_hits)
    // A preempted request that finds its own old blocks is not a prefix-cache hit.
    if (RequestRow& one = touch_row(hit.request); one.preemptions == 0)
      one.cached_tokens += hit.tokens;
  for (const RequestId id : record.preempted_recompute) {
    RequestRow& one = touch_row(id);
    one.state = RequestState::kPreempted;
    one.computed = one.blocks = 0;
    ++one.preemptions;
  }
  for (const RequestId id : record.preempted_swap) {
    RequestRow& one = touch_row(id);
    one.state = RequestState::kSwapped;
    ++one.preemptions;
  }
  for (const StepMember& member : record.members) {
    RequestRow& one = touch_row(member.request);
    if (one.end_reported) continue;  // this step was already in flight
    // It had not ended after all: a snapshot merely lacked it.
    if (has_ended(one.state)) one.ended = -1;
    one.state = member.phase == StepPhase::kPrompt ? RequestState::kPrefill : RequestState::kDecode;
    one.computed = member.first_position + member.tokens;
    one.known = std::max(one.known, one.computed);
    if (!member.samples) continue;
    one.known = std::max(one.known, one.computed + 1);
    if (one.first_token < 0) one.first_token = record.end_seconds;
    one.last_token = record.end_seconds;
  }
  for (const RequestId id : record.cancelled) touch_row(id).cancel_requested = true;
  for (const RequestId id : record.finished) {
    RequestRow& one = touch_row(id);
    one.end_reported = true;
    mark_ended(one, record.end_seconds);
  }
}

void RequestRows::mark_ended(RequestRow& row, double seconds) {
  row.state = row.cancel_requested || (row.admitted < 0 && row.computed == 0)
                  ? RequestState::kCancelled
                  : RequestState::kFinished;
  row.ended = seconds;
  row.blocks = 0;
}

void RequestRows::apply_snapshot(const EngineView& view) {
  ++snapshots_;
  for (const SequenceView& sequence : view.sequences) {
    const size_t before = rows_.size();
    RequestRow& one = row(sequence.id);
    const bool is_new = rows_.size() > before;
    one.seen_snapshot = snapshots_;
    // A step newer than the snapshot knows better.
    if (one.seen_step > view.snapshot_step) continue;
    if (is_new) one.arrived = view.now;
    if (has_ended(one.state)) continue;
    one.seen_step = view.snapshot_step;
    one.prompt_tokens = sequence.prompt_tokens;
    one.max_tokens = sequence.max_tokens;
    one.known = sequence.committed;
    one.computed = sequence.computed;
    one.priority = sequence.priority;
    one.blocks = sequence.blocks;
    one.preemptions = sequence.preemptions;
    switch (sequence.state) {
      case SequenceState::kWaiting:
        one.state = sequence.preemptions > 0 ? RequestState::kPreempted : RequestState::kWaiting;
        break;
      case SequenceState::kSwapped:
        one.state = RequestState::kSwapped;
        break;
      case SequenceState::kRunning:
      case SequenceState::kEnding:
        one.state =
            sequence.computed < sequence.prompt_tokens || sequence.committed > sequence.computed + 1
                ? RequestState::kPrefill
                : RequestState::kDecode;
        break;
    }
  }
  // If the engine goes idle, no step reports the end of the last request; its absence does.
  for (auto& [id, one] : rows_)
    if (!has_ended(one.state) && one.seen_step <= view.snapshot_step &&
        one.seen_snapshot != snapshots_)
      mark_ended(one, one.last_token >= 0 && !one.cancel_requested ? one.last_token : view.now);
}

void RequestRows::drop_old() {
  size_t ended = static_cast<size_t>(std::ranges::count_if(
      rows_, [](const auto& entry) { return has_ended(entry.second.state); }));
  for (auto at = rows_.begin(); at != rows_.end() && ended > kMaxEnded;) {
    if (!has_ended(at->second.state)) {
      ++at;
      continue;
    }
    at = rows_.erase(at);
    --ended;
  }
}

std::vector<const RequestRow*> RequestRows::sorted(RequestColumn column, bool descending,
                                                   double now) const {
  const auto value = [&](const RequestRow& row) -> double {
    switch (column) {
      case RequestColumn::kId:
        return static_cast<double>(row.id);
      case RequestColumn::kState:
        return state_place(row.state);
      case RequestColumn::kProgress:
        return double{row.progress()};
      case RequestColumn::kArrived:
        return row.arrived;
      case RequestColumn::kWaited:
        return row.waited(now);
      case RequestColumn::kTtft:
        return row.ttft();
      case RequestColumn::kRunning:
        return row.running(now);
      case RequestColumn::kPriority:
        return row.priority;
      case RequestColumn::kBlocks:
        return row.blocks;
      case RequestColumn::kPreemptions:
        return row.preemptions;
      case RequestColumn::kEnded:
        return row.ended;
    }
    return 0;
  };
  std::vector<std::pair<double, const RequestRow*>> keyed;
  keyed.reserve(rows_.size());
  for (const auto& [id, row] : rows_) keyed.emplace_back(value(row), &row);
  std::ranges::sort(keyed, [&](const auto& a, const auto& b) {
    if (a.first != b.first) return descending ? a.first > b.first : a.first < b.first;
    return a.second->id < b.second->id;
  });
  std::vector<const RequestRow*> rows;
  rows.reserve(keyed.size());
  for (const auto& [key, row] : keyed) rows.push_back(row);
  return rows;
}

}  // namespace hearth
