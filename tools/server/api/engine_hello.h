// The engine's settings as /events and /control show them.
#pragma once

#include "tools/server/api/server_state.h"
#include "tools/server/step_event.h"

namespace hearth {

EngineHello engine_hello(const ServerState& server, const ServedModel& model);

}  // namespace hearth
