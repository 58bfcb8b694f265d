// Runs a trace on the real engine and scheduler over a modelled device, in virtual time: nothing
// sleeps, and the result is the same on every run and every machine.
#pragma once

#include "engine/decoding/speculation/method.h"
#include "engine/scheduling/policy.h"
#include "engine/scheduling/scheduler.h"
#include "runtime/result.h"
#include "tools/replay/modelled_device.h"
#include "tools/replay/replay_report.h"
#include "tools/replay/replay_requests.h"

namespace hearth {

// Fails if a request can never run within `limits`. `input.step` is called from the engine's
// thread.
Result<ReplayRun> simulate_replay(const ModelledDevice& device, const SchedulerLimits& limits,
                                  const Policy& policy, const ReplayInput& input,
                                  const SpeculationOptions& speculation = {});

}  // namespace hearth
