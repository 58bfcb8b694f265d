// All current requests and the most recently ended ones, with their state, progress and times.
// Built from step records and corrected by the scheduler's snapshots if there are any. Call only
// from the window's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "ui/feeds/engine_view.h"

namespace hearth {

enum class RequestState : uint8_t {
  kWaiting,
  kPrefill,
  kDecode,
  kPreempted,  // waiting again, its blocks released: they will be recomputed
  kSwapped,    // waiting again, its blocks in host memory
  kFinished,
  kCancelled,  // by a user or client, or before it ever ran
};
const char* request_state_name(RequestState state);
inline bool has_ended(RequestState state) { return state >= RequestState::kFinished; }

struct RequestRow {
  RequestId id = 0;
  RequestState state = RequestState::kWaiting;
  uint32_t prompt_tokens = 0, max_tokens = 0;  // max: prompt and answer; 0: unknown
  uint32_t computed = 0, known = 0;            // tokens
  uint32_t cached_tokens = 0;                  // prompt tokens found in the prefix cache
  int32_t priority = 0;
  uint32_t blocks = 0, preemptions = 0;
  // Seconds on the engine's clock; negative: not yet, or unknown.
  double arrived = -1, admitted = -1, first_token = -1, last_token = -1, ended = -1;

  uint32_t generated() const { return known > prompt_tokens ? known - prompt_tokens : 0; }
  // Computed tokens as a fraction of the maximum; 1 once it has finished.
  float progress() const;
  // Durations in seconds, up to `now` if still going on; negative: unknown.
  double waited(double now) const;
  double ttft() const { return arrived >= 0 && first_token >= 0 ? first_token - arrived : -1; }
  double running(double now) const;  // since it was first admitted
  double total(double now) const;    // since it arrived

 private:
  friend class RequestRows;
  uint64_t seen_step = 0;  // the last step or snapshot that mentioned it
  uint64_t seen_snapshot = 0;
  bool cancel_requested = false;
  bool end_reported = false;  // by a step record, not just missing from a snapshot
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

class RequestRows {
 public:
  static constexpr size_t kMaxEnded = 200;

  // Call once per frame. Takes time linear in the new steps' members and the rows.
  void update(const EngineView& view);

  // Records what the user requested here, before the engine has done it.
  void note_cancel(RequestId id);
  void note_priority(RequestId id, int32_t priority);

  size_t size() const { return rows_.size(); }
  const RequestRow* find(RequestId id) const;
  size_t count(RequestState state) const;
  // Sorted by the column, then by age. Valid until the next update().
  std::vector<const RequestRow*> sorted(RequestColumn column, bool descending, double now) const;

 private:
  RequestRow& row(RequestId id);
  void add(const StepRecord& record);
  void mark_ended(RequestRow& row, double seconds);
  void apply_snapshot(const EngineView& view);
  void drop_old();

  uint64_t generation_ = 0, snapshots_ = 0;
  std::map<RequestId, RequestRow> rows_;  // ids are ascending
};

}  // namespace hearth
