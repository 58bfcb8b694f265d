// Gets a device ready to be measured: compiles the kernels and records the buckets that the replays
// will need, each once for all replays.
#pragma once

#include <span>

#include "engine/engine.h"
#include "runtime/result.h"
#include "tools/progress.h"
#include "tools/replay/replay_requests.h"
#include "tools/replay/warm_up_executor.h"

namespace hearth {

// Replays the beginning of the trace with all requests arriving at once, on an engine with each of
// these options: the policies and limits that will be measured. REQUIRES: nothing else uses the
// executor.
Status warm_up(WarmUpExecutor& executor, std::span<const EngineOptions> engines,
               const ReplayInput& input, Progress& progress);

}  // namespace hearth
