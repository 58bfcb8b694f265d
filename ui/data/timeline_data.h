// What the timeline shows: a row a request, a column a step. Columns are counted from 0 in the
// order in which steps became known; the newest kColumns are kept, and rows go when their last
// column does. Of the window's thread alone.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "ui/feeds/engine_view.h"

namespace hearth {

enum class CellState : uint8_t {
  kNone,  // before it came, after it ended, or not known because steps were missed
  kPrompt,
  kDecode,
  kIdle,  // has its place and its blocks, but no part in this step
  kWaiting,
  kPreempted,  // waits again, and lost its blocks
  kSwapped,    // waits again, its blocks in host memory
};
const char* cell_state_name(CellState state);  // "prompt chunk"
char cell_state_letter(CellState state);       // 'P': beside the colour, so that it is not alone

// What a request did in a step.
struct TimelineCell {
  CellState state = CellState::kNone;
  bool samples = false;
  uint32_t first_position = 0, tokens = 0;
  uint32_t prefix_tokens = 0;  // found in the cache when it was admitted in this step
};

// A step.
struct TimelineColumn {
  uint64_t step = 0;
  double begin_seconds = 0, plan_seconds = 0, run_seconds = 0, wait_seconds = 0, end_seconds = 0;
  uint32_t prompt_tokens = 0, decode_tokens = 0, padding_tokens = 0;
  uint32_t budget_tokens = 0;  // that a step may have, when this was seen
  uint32_t members = 0, running = 0, waiting = 0, swapped = 0;
  uint32_t blocks_copied = 0;
  uint64_t missed_before = 0;  // steps between this and the column before that nobody saw

  uint32_t tokens() const { return prompt_tokens + decode_tokens + padding_tokens; }
  double padding_share() const {
    return tokens() == 0 ? 0 : static_cast<double>(padding_tokens) / tokens();
  }
  double seconds() const { return plan_seconds + run_seconds; }
};

class TimelineRow {
 public:
  // Columns in which it did the same: up to the next run, or to the row's end.
  struct Run {
    uint64_t first = 0;
    TimelineCell cell;  // positions are those of the first column
  };

  RequestId request() const { return request_; }
  uint32_t prompt_tokens() const { return prompt_tokens_; }  // 0: not known
  uint32_t max_tokens() const { return max_tokens_; }
  bool finished() const { return finished_; }
  uint64_t first_column() const { return runs_.front().first; }
  // Behind its last column so far.
  uint64_t end_column(uint64_t newest_end) const { return open_ ? newest_end : end_; }
  CellState state() const { return open_ ? runs_.back().cell.state : CellState::kNone; }

  // The cell in a column, wherever that is.
  TimelineCell cell(uint64_t column) const;
  std::span<const Run> runs() const { return runs_; }
  // The run a column is in, or the first.
  size_t run_at(uint64_t column) const;

 private:
  friend class TimelineData;

  void set(uint64_t column, const TimelineCell& cell);

  RequestId request_ = 0;
  uint32_t prompt_tokens_ = 0, max_tokens_ = 0;
  std::vector<Run> runs_;  // at least one
  bool open_ = true;       // goes on with every new column
  bool finished_ = false;  // as was said by a step, not only lost from sight
  bool in_running_ = false;
  uint64_t end_ = 0;         // once it is not open
  uint64_t member_end_ = 0;  // behind the last column it had part in
};

class TimelineData {
 public:
  static constexpr size_t kColumns = 4096;

  // Takes a frame's steps. Costs what the steps' members and the kept rows are.
  void update(const EngineView& view);

  uint64_t first_column() const { return end_column_ - columns_.size(); }
  uint64_t end_column() const { return end_column_; }
  // REQUIRES: first_column() <= index < end_column().
  const TimelineColumn& column(uint64_t index) const { return columns_[index - first_column()]; }

  // In the order of arrival.
  size_t rows() const { return rows_.size(); }
  const TimelineRow& row(size_t index) const { return *rows_[index]; }
  const TimelineRow* find(RequestId request) const;
  // Indices of the rows that have a cell in columns [from, to).
  void rows_between(uint64_t from, uint64_t to, std::vector<size_t>& found) const;
  // Rows in each state now.
  size_t count(CellState state) const;
  uint64_t missed_steps() const { return missed_; }

 private:
  void clear();
  void add(const StepRecord& record, const EngineView& view, uint64_t missed);
  void close_rows_at_gap();
  void reopen_rows(const EngineView& view);
  void drop_old();
  // Makes it if there is none, and opens it again if it had been lost.
  TimelineRow& open_row(RequestId request, uint64_t column);
  void close(TimelineRow& row, uint64_t column, bool finished);

  uint64_t generation_ = 0;
  std::deque<TimelineColumn> columns_;
  uint64_t end_column_ = 0;
  uint64_t missed_ = 0;
  bool rows_lost_ = false;                          // rows are closed that may still be there
  std::vector<std::unique_ptr<TimelineRow>> rows_;  // by request
  std::unordered_map<RequestId, TimelineRow*> by_request_;
  std::vector<TimelineRow*> running_;
};

}  // namespace hearth
