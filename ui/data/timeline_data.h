// What the timeline shows: one row per request, one column per step. Columns are numbered from 0 in
// the order in which steps became known. The newest kColumns are kept; a row is dropped with its
// last column. Call only from the window's thread.
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
  kNone,  // before its arrival, after its end, or unknown because steps were missed
  kPrefill,
  kDecode,
  kIdle,  // running, with its blocks, but not part of this step's batch
  kWaiting,
  kPreempted,  // waiting again, its blocks released: they will be recomputed
  kSwapped,    // waiting again, its blocks in host memory
  kPadding,    // ended, but its row is computed until its whole batch has ended
};
const char* cell_state_name(CellState state);  // "prefill"
char cell_state_letter(CellState state);       // 'P': a second cue besides colour

// What a request did in one step.
struct TimelineCell {
  CellState state = CellState::kNone;
  bool samples = false;
  uint32_t first_position = 0, tokens = 0;
  uint32_t prefix_tokens = 0;           // prefix-cache hit, if it was admitted in this step
  uint32_t padding = 0;                 // tokens of padding in its row, next to its own
  uint32_t recomputed = 0;              // of its tokens, computed in an earlier step already
  uint32_t forced = 0;                  // of its tokens, appended by a grammar without sampling
  uint32_t proposed = 0, accepted = 0;  // of its tokens, guesses of speculation

  uint32_t rejected() const { return proposed - accepted; }
  // Whether two consecutive columns can share a run, if their positions follow each other.
  bool continues(const TimelineCell& before) const;
};

// One step.
struct TimelineColumn {
  uint64_t step = 0;
  double begin_seconds = 0, plan_seconds = 0, run_seconds = 0, wait_seconds = 0, end_seconds = 0;
  uint32_t prompt_tokens = 0, decode_tokens = 0, padding_tokens = 0;
  uint32_t budget_tokens = 0;  // the token budget at that time
  uint32_t members = 0, running = 0, waiting = 0, swapped = 0;
  uint32_t blocks_copied = 0, blocks_swapped_out = 0, blocks_swapped_in = 0;
  bool policy_changed = false;  // since the previous column
  uint64_t missed_before = 0;   // missed steps between this column and the previous one

  uint32_t tokens() const { return prompt_tokens + decode_tokens + padding_tokens; }
  double padding_share() const {
    return tokens() == 0 ? 0 : static_cast<double>(padding_tokens) / tokens();
  }
  double seconds() const { return plan_seconds + run_seconds; }
  // When the device began with it: steps are planned while the previous one still runs.
  double start_seconds() const { return end_seconds - run_seconds; }
};

class TimelineRow {
 public:
  // Consecutive columns with the same cell: up to the next run, or to the row's end.
  struct Run {
    uint64_t first = 0;
    TimelineCell cell;  // first_position is that of the run's first column
  };

  RequestId request() const { return request_; }
  uint32_t prompt_tokens() const { return prompt_tokens_; }  // 0: unknown
  uint32_t max_tokens() const { return max_tokens_; }
  bool finished() const { return finished_; }
  uint64_t first_column() const { return runs_.front().first; }
  // One past its last column so far.
  uint64_t end_column(uint64_t newest_end) const { return open_ ? newest_end : end_; }
  CellState state() const { return open_ ? runs_.back().cell.state : CellState::kNone; }

  // The cell in any column; kNone outside the row.
  TimelineCell cell(uint64_t column) const;
  std::span<const Run> runs() const { return runs_; }
  // The index of the run that contains a column, or of the first run.
  size_t run_at(uint64_t column) const;

 private:
  friend class TimelineData;

  void set(uint64_t column, const TimelineCell& cell);
  // Adds a cell of padding, after its end if it has ended.
  void pad(uint64_t column, uint32_t tokens);

  RequestId request_ = 0;
  uint32_t prompt_tokens_ = 0, max_tokens_ = 0;
  std::vector<Run> runs_;  // at least one
  bool open_ = true;       // grows with every new column
  bool finished_ = false;  // reported by a step, not just closed because steps were missed
  bool in_running_ = false;
  uint64_t end_ = 0;           // valid once it is closed
  uint64_t member_end_ = 0;    // one past the last column in which it was a member of the batch
  uint64_t padded_end_ = 0;    // one past the last column in which its row was padding
  uint32_t computed_ = 0;      // tokens computed so far, from the start of the prompt; 0: not known
  bool last_sampled_ = false;  // in the last step that it was a member of
};

class TimelineData {
 public:
  static constexpr size_t kColumns = 20'000;

  // Call once per frame. Takes time linear in the new steps' members and the rows.
  void update(const EngineView& view);

  uint64_t first_column() const { return end_column_ - columns_.size(); }
  uint64_t end_column() const { return end_column_; }
  // REQUIRES: first_column() <= index < end_column().
  const TimelineColumn& column(uint64_t index) const { return columns_[index - first_column()]; }

  // In order of arrival.
  size_t rows() const { return rows_.size(); }
  const TimelineRow& row(size_t index) const { return *rows_[index]; }
  const TimelineRow* find(RequestId request) const;
  // Indices of the rows that have a cell in columns [from, to).
  void rows_between(uint64_t from, uint64_t to, std::vector<size_t>& found) const;
  // How many rows are in this state now.
  size_t count(CellState state) const;
  uint64_t missed_steps() const { return missed_; }
  // Which rare kinds of cells there have been, for the legend.
  struct Marks {
    bool recomputed = false, rejected = false, forced = false;
  };
  const Marks& marks() const { return marks_; }

 private:
  void clear();
  void add(const StepRecord& record, const EngineView& view, uint64_t missed);
  void close_rows_at_gap();
  void reopen_rows(const EngineView& view);
  void drop_old();
  TimelineCell cell_of(const TimelineRow& row, const StepMember& member, uint32_t width) const;
  void pad_ended_rows(const StepRecord& record, uint32_t width, uint64_t column);
  // Creates the row if missing, and reopens it if a gap had closed it.
  TimelineRow& open_row(RequestId request, uint64_t column);
  void close(TimelineRow& row, uint64_t column, bool finished);

  uint64_t generation_ = 0;
  std::deque<TimelineColumn> columns_;
  uint64_t end_column_ = 0;
  uint64_t missed_ = 0;
  bool rows_lost_ = false;                          // closed rows may still be running
  std::vector<std::unique_ptr<TimelineRow>> rows_;  // sorted by request
  std::unordered_map<RequestId, TimelineRow*> by_request_;
  std::vector<TimelineRow*> running_;
  std::vector<RequestId> batch_ended_;  // members of the padded batch that have ended, in order
  Policy policy_;
  Marks marks_;
};

}  // namespace hearth
