// Measures what the dashboard's roofline shows: the device's ceilings, and how the parts of a
// prompt step and of decode steps compare with them.
#pragma once

#include "engine/session.h"
#include "runtime/result.h"
#include "ui/data/roofline_data.h"

namespace hearth {

// Takes seconds, and overwrites the KV cache. REQUIRES: the session's engine was not started, or
// was stopped.
Result<RooflineData> measure_roofline(Session& session);

}  // namespace hearth
