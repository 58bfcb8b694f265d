#include "tools/server/api/error_shape.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/server/openai_reply.h"

namespace hearth {
namespace {

// Anthropic's word for a status.
std::string_view anthropic_type(int status) {
  switch (status) {
    case 400:
      return "invalid_request_error";
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

nlohmann::json error_body(ErrorShape shape, const ApiError& error) {
  switch (shape) {
    case ErrorShape::kAnthropic:
      return {{"type", "error"},
              {"error", {{"type", anthropic_type(error.status)}, {"message", error.message}}}};
    case ErrorShape::kOllama:
      return {{"error", error.message}};
    case ErrorShape::kOpenAi:
      break;
  }
  return error_json(error);
}

}  // namespace hearth
