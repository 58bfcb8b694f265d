// Every request there is, and the last ones that have ended: what each is doing, how far it is, and
// how long it took. From step records, made exact by looks at the scheduler where there are any.
// Of the window's thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "ui/feeds/engine_view.h"

namespace hearth {

enum class RequestState : uint8_t {
  kWaiting,
  kPrompt,
  kDecode,
  kPreempted,  // waits again, and lost its blocks
  kSwapped,    // waits again, its blocks in host memory
  kFinished,
  kCancelled,  // by somebody, or before it ever ran
};
const char* request_state_name(RequestState state);
inline bool has_ended(RequestState state) { return state >= RequestState::kFinished; }

struct RequestRow {
  RequestId id = 0;
  RequestState state = RequestState::kWaiting;
  uint32_t prompt_tokens = 0, max_tokens = 0;  // max: prompt and generated; 0: not known
  uint32_t computed = 0, known = 0;            // tokens
  uint32_t cached_tokens = 0;                  // of the prompt, found in the prefix cache
  int32_t priority = 0;
  uint32_t blocks = 0, preemptions = 0;
  // Seconds on the engine's clock; below 0: not yet, or not known.
  double arrived = -1, admitted = -1, first_token = -1, last_token = -1, ended = -1;

  uint32_t generated() const { return known > prompt_tokens ? known - prompt_tokens : 0; }
  // Of what it may become; what ended is whole.
  float progress() const;
  // In seconds; below 0: not known. `now` counts for what is not over yet.
  double waited(double now) const;
  double ttft() const { return arrived >= 0 && first_token >= 0 ? first_token - arrived : -1; }
  double running(double now) const;  // since it was first admitted
  double total(double now) const;    // since it came

 private:
  friend class RequestTable;
  uint64_t seen_step = 0;  // the last step, or look, that named it
  uint64_t seen_snapshot = 0;
  bool cancel_requested = false;
  bool end_reported = false;  // by a step, and not only by its absence
};

enum class RequestColumn : uint8_t {
  kId,
  kState,
  kProgress,
  kArrived,
  kWaited,
  kTtft,
  kRunning,
  kPriority,
  kBlocks,
  kPreemptions,
  kEnded,
};

class RequestTable {
 public:
  static constexpr size_t kMaxEnded = 200;

  // Takes a frame's news. Costs what the steps' members and the rows are.
  void update(const EngineView& view);

  // What was asked for here, before the engine has done it.
  void note_cancel(RequestId id);
  void note_priority(RequestId id, int32_t priority);

  size_t size() const { return rows_.size(); }
  const RequestRow* find(RequestId id) const;
  size_t count(RequestState state) const;
  // Sorted by this column; equals by their age. Valid until the next update().
  std::vector<const RequestRow*> sorted(RequestColumn column, bool descending, double now) const;

 private:
  RequestRow& row(RequestId id);
  void add(const StepRecord& record);
  void mark_ended(RequestRow& row, double seconds);
  void apply_snapshot(const EngineView& view);
  void drop_old();

  uint64_t generation_ = 0, snapshots_ = 0;
  std::map<RequestId, RequestRow> rows_;  // ids count up
};

}  // namespace hearth
