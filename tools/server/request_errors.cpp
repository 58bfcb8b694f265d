#include "tools/server/request_errors.h"

#include <cmath>

#include <fmt/format.h>

namespace hearth {
namespace {

ApiError grammar_error(const std::string& field, const std::string& message) {
  return {.message = fmt::format("'{}': {}", field, message),
          .param = field,
          .code = "unsupported_schema"};
}

}  // namespace

ApiError to_api_error(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kBusy:
      return {.status = 429,
              .message = error.message,
              .type = "rate_limit_error",
              .code = "queue_full"};
    case ErrorKind::kInvalid:
      return {.status = 400, .message = error.message};
    default:
      return {.status = 503, .message = error.message, .type = "server_error"};
  }
}

ApiError to_api_error(const Error& error, const Engine& engine) {
  ApiError result = to_api_error(error);
  result.retry_seconds = static_cast<int>(std::ceil(engine.retry_seconds()));
  return result;
}

ApiError submit_error(const Error& error, const Engine& engine, const std::string& grammar_field) {
  if (error.kind == ErrorKind::kUnsupported && !grammar_field.empty())
    return grammar_error(grammar_field, error.message);
  return to_api_error(error, engine);
}

ApiError generation_error(const GenerationEnd& end, const std::string& grammar_field) {
  if (end.grammar_failed && !grammar_field.empty())
    return grammar_error(grammar_field, end.message);
  return {.status = 503, .message = end.message, .type = "server_error"};
}

}  // namespace hearth
