// Runs a trace on an engine, on the real clock, and measures.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "runtime/result.h"
#include "tools/replay/replay_report.h"
#include "tools/replay/trace.h"

namespace hearth {

// Sees every step, in order, from a thread of its own.
using StepSink = std::function<void(const StepRecord&)>;

struct ReplayInput {
  const Trace& trace;                               // lengths fit the engine's context
  std::span<const std::vector<TokenId>> prompts;    // of its requests
  std::function<void(double begin_seconds)> begin;  // before the first request; may be empty
  StepSink step;                                    // may be empty
};

// Submits every request when it is due and waits for all of them. REQUIRES: the engine is new and
// nobody else submits. Fails if the engine does, or refuses a request.
Result<ReplayRun> run_replay(Engine& engine, const ReplayInput& input);

}  // namespace hearth
