// Gets a device ready to be measured: compiles the kernels and records the buckets that the
// policies will need, each once for all policies.
#pragma once

#include <span>

#include "engine/engine.h"
#include "engine/scheduling/policy.h"
#include "runtime/result.h"
#include "tools/progress.h"
#include "tools/replay/replay_requests.h"
#include "tools/replay/warm_up_executor.h"

namespace hearth {

// Replays the beginning of the trace under each policy, with all requests arriving at once, on
// engines with these options. REQUIRES: nothing else uses the executor.
Status warm_up(WarmUpExecutor& executor, const EngineOptions& options,
               std::span<const Policy> policies, const ReplayInput& input, Progress& progress);

}  // namespace hearth
