// What a client is told when its request cannot be run to its end.
#pragma once

#include <string>

#include "engine/engine.h"
#include "engine/generation.h"
#include "runtime/result.h"
#include "tools/server/api_error.h"

namespace hearth {

inline const ApiError kClientGone{
    .status = 499, .message = "the client is gone", .type = "server_error"};
inline const ApiError kTimeIsUp{
    .status = 503,
    .message = "the request's time limit passed before its prompt was ready",
    .type = "server_error",
    .code = "time_limit"};

// Why the engine took no request.
ApiError to_api_error(const Error& error);
// The same for an error of Engine::submit(), with when to try again.
ApiError to_api_error(const Error& error, const Engine& engine);

// For a request with a grammar, these two blame `grammar_field`, the field that asked for it, for a
// grammar that compiles, but whose masks take too much time or memory. It is empty for others.
ApiError submit_error(const Error& error, const Engine& engine, const std::string& grammar_field);
// REQUIRES: end.reason is kError.
ApiError generation_error(const GenerationEnd& end, const std::string& grammar_field);

}  // namespace hearth
