// Measures what the dashboard's roofline shows: the device's ceilings, and the parts of a prompt
// step and of decode steps beside them.
#pragma once

#include "engine/session.h"
#include "runtime/result.h"
#include "ui/data/roofline_data.h"

namespace hearth {

// Takes seconds. REQUIRES: the session's engine was not started, or was stopped; what its KV cache
// held is overwritten.
Result<RooflineData> measure_roofline(Session& session);

}  // namespace hearth
