// GET /events: one client that watches the engine's steps as server-sent events.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "engine/engine.h"
#include "tools/server/http_reply.h"
#include "tools/server/step_event.h"

namespace hearth {

// Sends `hello()`, then the last `history` steps as far as they are recorded, then every step, and
// the counts of requests and blocks whenever they change without a step. hello() is asked 50 times
// per second, and sent again if the engine's settings have changed. Returns when the client is gone
// or `end` is true. A client that is too slow misses steps; the engine never waits.
void stream_events(const Engine& engine, const std::function<EngineHello()>& hello,
                   uint64_t history, HttpReply& reply, const std::atomic<bool>& end);

}  // namespace hearth
