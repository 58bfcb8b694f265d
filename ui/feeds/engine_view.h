// What the dashboard knows of an engine, refreshed once a frame: plain data. Feeds fill it in,
// panels are drawn from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/metrics.h"
#include "engine/scheduling/policy.h"
#include "engine/scheduling/scheduler_views.h"
#include "engine/step_record.h"

namespace hearth {

struct MemoryPart {
  std::string name;  // "weights", "KV cache", "activations"
  uint64_t bytes = 0;
};

struct EngineTotals {
  uint64_t requests_submitted = 0, requests_refused = 0, requests_finished = 0;
  uint64_t prompt_tokens = 0, generated_tokens = 0, padding_tokens = 0;
  uint64_t prefix_query_tokens = 0, prefix_hit_tokens = 0;
  uint64_t preemptions_recompute = 0, preemptions_swap = 0;
};

struct EngineView {
  bool connected = false;   // there is an engine; without one only `source` and `failure` count
  uint64_t generation = 0;  // another number: another engine, whose clock and ids begin anew
  std::string source;       // what is shown, for people: "hearth-storyteller on llvmpipe"
  std::string failure;      // what went wrong, if anything
  EngineState state = EngineState::kRunning;
  double now = 0;   // seconds on the engine's clock
  double pace = 0;  // steps a second in slow motion; 0: as fast as can be

  Policy policy;
  SchedulerLimits limits;
  SchedulerCounts counts;             // after the newest step was planned
  std::vector<StepRecord> new_steps;  // since the frame before, oldest first
  uint64_t missed_steps = 0;          // since the frame before: overwritten before they were read

  // As of some moment not long ago. Empty where a feed tells of steps only (has_details is false).
  bool has_snapshot = false;
  std::vector<SequenceView> sequences;  // the running, then the waiting in their order
  std::vector<BlockView> blocks;        // the pool
  uint64_t snapshot_step = 0;           // steps that were planned when these were looked at

  EngineTotals totals;
  Histogram::Snapshot ttft, tbt, tpot, e2e, queue;  // seconds, since the engine began

  std::string model, device;
  std::vector<MemoryPart> memory;
  uint64_t memory_budget_bytes = 0;  // of the device; 0: not known
};

}  // namespace hearth
