#include "ui/data/timeline_data.h"

#include <algorithm>
#include <tuple>

namespace hearth {

const char* cell_state_name(CellState state) {
  switch (state) {
    case CellState::kNone:
      return "";
    case CellState::kPrefill:
      return "prefill";
    case CellState::kDecode:
      return "decode";
    case CellState::kIdle:
      return "idle (not in this step's batch)";
    case CellState::kWaiting:
      return "waiting";
    case CellState::kPreempted:
      return "preempted";
    case CellState::kSwapped:
      return "swapped";
    case CellState::kPadding:
      return "padding (it has ended, but its batch has not)";
  }
  return "";
}

char cell_state_letter(CellState state) {
  switch (state) {
    case CellState::kNone:
    case CellState::kIdle:
    case CellState::kPadding:
      return 0;
    case CellState::kPrefill:
      return 'P';
    case CellState::kDecode:
      return 'D';
    case CellState::kWaiting:
      return 'w';
    case CellState::kPreempted:
      return 'x';
    case CellState::kSwapped:
      return 's';
  }
  return 0;
}

bool TimelineCell::continues(const TimelineCell& before) const {
  const auto numbers = [](const TimelineCell& cell) {
    return std::tuple(cell.state, cell.samples, cell.tokens, cell.padding, cell.recomputed,
                      cell.forced, cell.proposed, cell.accepted);
  };
  return numbers(*this) == numbers(before) && prefix_tokens == 0 && before.prefix_tokens == 0;
}

size_t TimelineRow::run_at(uint64_t column) const {
  const auto next = std::upper_bound(runs_.begin(), runs_.end(), column,
                                     [](uint64_t c, const Run& run) { return c < run.first; });
  return next == runs_.begin() ? 0 : static_cast<size_t>(next - runs_.begin()) - 1;
}

TimelineCell TimelineRow::cell(uint64_t column) const {
  if (column < first_column() || (!open_ && column >= end_)) return {};
  const Run& run = runs_[run_at(column)];
  TimelineCell cell = run.cell;
  cell.first_position += static_cast<uint32_t>(column - run.first) * cell.tokens;
  return cell;
}

void TimelineRow::set(uint64_t column, const TimelineCell& cell) {
  Run& last = runs_.back();
  const TimelineCell& old = last.cell;
  const auto next_position =
      old.first_position + static_cast<uint32_t>(column - last.first) * old.tokens;
  if (cell.continues(old) && (cell.tokens == 0 || next_position == cell.first_position)) return;
  if (last.first == column)
    last.cell = cell;
  else
    runs_.push_back({column, cell});
}

void TimelineRow::pad(uint64_t column, uint32_t tokens) {
  if (!open_ && end_ < column) runs_.push_back({end_, {}});
  set(column, {.state = CellState::kPadding, .padding = tokens});
  padded_end_ = column + 1;
  if (!open_) end_ = std::max(end_, column + 1);
}

void TimelineData::update(const EngineView& view) {
  if (view.generation != generation_) {
    clear();
    generation_ = view.generation;
  }
  uint64_t missed = view.missed_steps;
  if (missed > 0) {
    missed_ += missed;
    close_rows_at_gap();
  }
  for (const StepRecord& record : view.new_steps) {
    add(record, view, missed);
    missed = 0;
  }
  if (rows_lost_ && view.has_snapshot) reopen_rows(view);
  if (!view.new_steps.empty()) drop_old();
}

void TimelineData::clear() {
  columns_.clear();
  end_column_ = 0;
  missed_ = 0;
  rows_lost_ = false;
  rows_.clear();
  by_request_.clear();
  running_.clear();
  batch_ended_.clear();
  marks_ = {};
}

const TimelineRow* TimelineData::find(RequestId request) const {
  const auto place = by_request_.find(request);
  return place == by_request_.end() ? nullptr : place->second;
}

TimelineRow& TimelineData::open_row(RequestId request, uint64_t column) {
  TimelineRow*& known = by_request_[request];
  if (!known) {
    auto row = std::make_unique<TimelineRow>();
    row->request_ = request;
    row->runs_.push_back({column, {.state = CellState::kWaiting}});
    known = row.get();
    // Ids ascend in order of arrival, so this is almost always the end.
    const auto place =
        std::upper_bound(rows_.begin(), rows_.end(), request,
                         [](RequestId id, const std::unique_ptr<TimelineRow>& other) {
                           return id < other->request();
                         });
    rows_.insert(place, std::move(row));
  } else if (!known->open_) {
    if (known->end_ < column) known->runs_.push_back({known->end_, {}});
    known->open_ = true;
  }
  return *known;
}

void TimelineData::close(TimelineRow& row, uint64_t column, bool finished) {
  row.finished_ = row.finished_ || finished;
  if (!row.open_) return;
  row.open_ = false;
  // A request that arrived and ended between two steps still gets one visible cell.
  row.end_ = std::max({column, row.first_column() + (finished ? 1 : 0), row.padded_end_});
}

void TimelineData::add(const StepRecord& record, const EngineView& view, uint64_t missed) {
  const uint64_t now = end_column_++;
  TimelineColumn& column = columns_.emplace_back();
  column = {.step = record.step,
            .begin_seconds = record.begin_seconds,
            .plan_seconds = record.plan_seconds,
            .run_seconds = record.run_seconds,
            .wait_seconds = record.wait_seconds,
            .end_seconds = record.end_seconds,
            .padding_tokens = record.padding_tokens,
            .budget_tokens = view.limits.max_step_tokens,
            .members = static_cast<uint32_t>(record.members.size()),
            .running = record.counts.running,
            .waiting = record.counts.waiting,
            .swapped = record.counts.swapped,
            .blocks_copied = record.blocks_copied,
            .blocks_swapped_out = record.blocks_swapped_out,
            .blocks_swapped_in = record.blocks_swapped_in,
            .policy_changed = now > 0 && view.policy != policy_,
            .missed_before = missed};
  policy_ = view.policy;

  for (const StepRecord::Arrival& arrival : record.arrived) {
    TimelineRow& row = open_row(arrival.request, now);
    row.prompt_tokens_ = arrival.prompt_tokens;
    row.max_tokens_ = arrival.max_tokens;
  }
  for (const RequestId id : record.preempted_recompute)
    open_row(id, now).set(now, {.state = CellState::kPreempted});
  for (const RequestId id : record.preempted_swap)
    open_row(id, now).set(now, {.state = CellState::kSwapped});
  for (const RequestId id : record.admitted) open_row(id, now);

  uint32_t width = 0;  // tokens per row of a padded step
  for (const StepMember& member : record.members) width = std::max(width, member.tokens);
  bool same_batch = false;
  for (const StepMember& member : record.members) {
    TimelineRow& row = open_row(member.request, now);
    const bool prompt = member.phase == StepPhase::kPrompt;
    (prompt ? column.prompt_tokens : column.decode_tokens) += member.tokens;
    same_batch = same_batch || (now > 0 && row.member_end_ == now);
    const TimelineCell cell = cell_of(row, member, record.padding_tokens > 0 ? width : 0);
    // Chunks that recompute what was there say nothing about the newest token.
    const uint32_t computed = member.first_position + member.tokens - cell.rejected();
    if (computed > row.computed_)
      row.last_sampled_ = member.samples;
    else if (computed == row.computed_)
      row.last_sampled_ |= member.samples;
    row.computed_ = std::max(row.computed_, computed);
    marks_.recomputed |= cell.recomputed > 0;
    marks_.rejected |= cell.rejected() > 0;
    marks_.forced |= cell.forced > 0;
    row.set(now, cell);
    row.member_end_ = now + 1;
    if (row.in_running_) continue;
    row.in_running_ = true;
    running_.push_back(&row);
  }
  for (const BatchPlan::PrefixHit& hit : record.prefix_hits) {
    const auto place = by_request_.find(hit.request);
    if (place == by_request_.end() || hit.tokens == 0) continue;
    TimelineRow& row = *place->second;
    TimelineCell cell = row.cell(now);
    cell.prefix_tokens = hit.tokens;
    row.set(now, cell);
  }

  if (!same_batch) batch_ended_.clear();
  pad_ended_rows(record, width, now);

  // A request that ended with this step may still be a member of the next one, which was already in
  // flight; that step closes the row again.
  for (const RequestId id : record.finished)
    if (const auto place = by_request_.find(id); place != by_request_.end()) {
      close(*place->second, std::max(place->second->member_end_, now), true);
      batch_ended_.push_back(id);
    }
  std::erase_if(running_, [&](TimelineRow* row) {
    const bool member = row->member_end_ == now + 1;
    if (row->open_ && row->finished_) close(*row, row->member_end_, true);
    const CellState state = row->state();
    const bool stays =
        row->open_ && (member || state == CellState::kPrefill || state == CellState::kDecode ||
                       state == CellState::kIdle || state == CellState::kPadding);
    if (stays && !member && row->padded_end_ != now + 1) row->set(now, {.state = CellState::kIdle});
    if (!stays) row->in_running_ = false;
    return !stays;
  });
}

// What a member did, given what was computed before it. `width` is 0 unless the step is padded.
TimelineCell TimelineData::cell_of(const TimelineRow& row, const StepMember& member,
                                   uint32_t width) const {
  const uint32_t first = member.first_position;
  TimelineCell cell{
      .state = member.phase == StepPhase::kPrompt ? CellState::kPrefill : CellState::kDecode,
      .samples = member.samples,
      .first_position = first,
      .tokens = member.tokens,
      .padding = width > member.tokens ? width - member.tokens : 0,
      .proposed = member.proposed,
      .accepted = std::min(member.accepted, member.proposed)};
  // A row that is new here was computed up to this step. A second member is the request's shadow,
  // whose tokens are others.
  const bool known = row.computed_ > 0;
  if (row.member_end_ == end_column_) return cell;
  const uint32_t before = known ? row.computed_ : first;
  if (before > first) cell.recomputed = std::min(before - first, member.tokens);
  // What follows the prompt is one sampled token, and after it what a grammar appended.
  const uint32_t end = first + member.tokens - std::min(member.proposed, member.tokens);
  const uint32_t from = std::max({before, first, row.prompt_tokens_});
  const bool sampled = known ? row.last_sampled_ : first >= row.prompt_tokens_;
  if (row.prompt_tokens_ > 0 && end > from + (sampled ? 1 : 0))
    cell.forced = end - from - (sampled ? 1 : 0);
  return cell;
}

// A batch of request admission keeps the rows of members that have ended: what the members' own
// rows do not account for is theirs.
void TimelineData::pad_ended_rows(const StepRecord& record, uint32_t width, uint64_t column) {
  uint64_t left = record.padding_tokens;
  for (const StepMember& member : record.members)
    left -= std::min<uint64_t>(left, width - member.tokens);
  const auto pad = [&](TimelineRow& row) {
    row.pad(column, width);
    left -= std::min<uint64_t>(left, width);
  };
  // Where tokens are delivered with the batch, its requests end together.
  for (TimelineRow* row : running_)
    if (left > 0 && row->open_ && row->member_end_ <= column) pad(*row);
  for (size_t i = batch_ended_.size(); i > 0 && left > 0; --i) {
    const auto place = by_request_.find(batch_ended_[i - 1]);
    if (place == by_request_.end() || place->second->open_) continue;
    pad(*place->second);
  }
}

// During missed steps any request may have ended. Rows are closed until a step or a snapshot
// mentions them again.
void TimelineData::close_rows_at_gap() {
  for (const std::unique_ptr<TimelineRow>& row : rows_)
    if (row->open_) close(*row, end_column_, false);
  for (TimelineRow* row : running_) row->in_running_ = false;
  for (const std::unique_ptr<TimelineRow>& row : rows_) row->computed_ = 0;
  running_.clear();
  batch_ended_.clear();
  rows_lost_ = true;
}

void TimelineData::reopen_rows(const EngineView& view) {
  // A snapshot from before the gap says nothing about the state after it.
  const uint64_t newest = columns_.empty() ? 0 : columns_.back().step;
  if (view.snapshot_step < newest || columns_.empty()) return;
  rows_lost_ = false;
  const uint64_t now = end_column_ - 1;
  for (const SequenceView& sequence : view.sequences) {
    if (sequence.state == SequenceState::kEnding) continue;
    const auto place = by_request_.find(sequence.id);
    if (place != by_request_.end() && (place->second->open_ || place->second->finished_)) continue;
    TimelineRow& row = open_row(sequence.id, now);
    row.prompt_tokens_ = sequence.prompt_tokens;
    row.max_tokens_ = sequence.max_tokens;
    CellState state = sequence.preemptions > 0 ? CellState::kPreempted : CellState::kWaiting;
    if (sequence.state == SequenceState::kSwapped) state = CellState::kSwapped;
    if (sequence.state == SequenceState::kRunning) state = CellState::kIdle;
    row.set(now, {.state = state});
    if (state != CellState::kIdle || row.in_running_) continue;
    row.in_running_ = true;
    running_.push_back(&row);
  }
}

void TimelineData::drop_old() {
  while (columns_.size() > kColumns) columns_.pop_front();
  const uint64_t oldest = first_column();
  if (oldest == 0) return;
  std::erase_if(rows_, [&](const std::unique_ptr<TimelineRow>& row) {
    if (row->end_column(end_column_) > oldest) {
      // Drops invisible runs once they are the majority, so that erasing stays cheap.
      const size_t first = row->run_at(oldest);
      if (first > 16 && first > row->runs_.size() / 2)
        row->runs_.erase(row->runs_.begin(), row->runs_.begin() + static_cast<ptrdiff_t>(first));
      return false;
    }
    by_request_.erase(row->request());
    return true;
  });
}

void TimelineData::rows_between(uint64_t from, uint64_t to, std::vector<size_t>& found) const {
  found.clear();
  for (size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i]->first_column() < to && rows_[i]->end_column(end_column_) > from)
      found.push_back(i);
}

size_t TimelineData::count(CellState state) const {
  return static_cast<size_t>(std::count_if(
      rows_.begin(), rows_.end(),
      [&](const std::unique_ptr<TimelineRow>& row) { return row->state() == state; }));
}

}  // namespace hearth
