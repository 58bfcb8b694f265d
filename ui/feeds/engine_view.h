// Everything the dashboard knows about an engine, as plain data. A feed refreshes it once per
// frame; panels draw from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/metrics.h"
#include "engine/model/step_preparation.h"
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
  bool connected = false;   // if false, only `source` and `failure` are valid
  uint64_t generation = 0;  // changes with the engine, whose clock and request ids restart
  std::string source;       // shown in the menu bar: "hearth-storyteller on llvmpipe"
  std::string failure;      // error message; empty if there is none
  EngineState state = EngineState::kRunning;
  double now = 0;   // seconds on the engine's clock
  double pace = 0;  // slow motion, in steps per second; 0: full speed

  Policy policy;
  SchedulerLimits limits;
  // Of a server: whether it can be controlled, what its limits can be raised to, and how many
  // tokens its vocabulary has.
  bool controllable = false;
  SchedulerLimits most_limits;
  uint32_t vocabulary = 0;
  SchedulerCounts counts;             // of the snapshot, or else of the newest step's plan
  std::vector<StepRecord> new_steps;  // since the last frame, oldest first
  uint64_t missed_steps = 0;          // since the last frame: overwritten before they were read

  // The scheduler's newest snapshot, at most a few frames old. Empty if the feed only delivers
  // steps (has_snapshot is false).
  bool has_snapshot = false;
  std::vector<SequenceView> sequences;  // running ones first, then the queue in order
  std::vector<BlockView> blocks;        // the whole pool
  // Of the running ones, one after the other. Empty in recordings.
  std::vector<BlockId> block_tables;
  uint64_t snapshot_step = 0;           // steps planned before the snapshot was taken

  // Panels that count or average begin again when `restart` changes: with a new policy, or when the
  // user says so. Their numbers are about the time since then.
  uint64_t restart = 0;
  double restart_seconds = 0;  // on the engine's clock

  EngineTotals totals;

  std::string model, device;
  PreparationProgress kernels{.done = true};  // compiled in the background
  std::vector<MemoryPart> memory;
  uint64_t memory_budget_bytes = 0;  // the device's memory; 0: unknown
};

}  // namespace hearth
