// Runs a trace on an engine in real time and measures it.
#pragma once

#include "engine/engine.h"
#include "runtime/result.h"
#include "tools/replay/replay_report.h"
#include "tools/replay/replay_requests.h"

namespace hearth {

// Submits every request when it is due and waits for all of them. `input.step` is called from a
// thread of its own. Fails if the engine fails or refuses a request. REQUIRES: the engine is new,
// runs on the real clock, and has no other requests.
Result<ReplayRun> run_replay(Engine& engine, const ReplayInput& input);

}  // namespace hearth
