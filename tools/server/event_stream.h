// GET /events: one client that watches the engine's steps as server-sent events.
#pragma once

#include <atomic>

#include "engine/engine.h"
#include "tools/server/http_reply.h"
#include "tools/server/step_event.h"

namespace hearth {

// Sends `hello`, then every step, and the counts of requests and blocks whenever they change
// without a step. Returns when the client is gone or `end` is true. A client that is too slow
// misses steps; nobody waits for it.
void stream_events(const Engine& engine, const EngineHello& hello, HttpReply& reply,
                   const std::atomic<bool>& end);

}  // namespace hearth
