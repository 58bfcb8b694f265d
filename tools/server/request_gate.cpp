#include "tools/server/request_gate.h"

#include <fmt/format.h>

namespace hearth {

std::string_view method_to_route(const HttpRequest& request) {
  return request.method == "HEAD" ? std::string_view("GET") : std::string_view(request.method);
}

std::optional<ApiError> RequestGate::check_browser(const HttpRequest& head) const {
  if (!keys_.empty()) return std::nullopt;
  std::string reason = refusal_of_host(head, rules_);
  if (reason.empty()) reason = refusal_of_origin(head, rules_);
  if (reason.empty()) return std::nullopt;
  return ApiError{
      .status = 403, .message = std::move(reason), .type = "permission_error", .code = "forbidden"};
}

std::optional<ApiError> RequestGate::check_route(const Route& route,
                                                 const HttpRequest& head) const {
  // A client without a key does not learn which addresses exist.
  const bool has_key = keys_.admit(head.header("authorization")) ||
                       keys_.admit_key(head.header("x-api-key"));  // Anthropic's clients
  if (!route.open && !has_key)
    return ApiError{.status = 401,
                    .message = "a valid API key is needed: Authorization: Bearer KEY",
                    .type = "authentication_error",
                    .code = "invalid_api_key"};
  if (route.method.empty())
    return ApiError{.status = 404,
                    .message = "there is nothing at this address (/docs lists all)"};
  if (route.method != method_to_route(head))
    return ApiError{.status = 405, .message = fmt::format("use {} for this address", route.method)};
  if (route.method == "POST" && browser_sent_no_json(head))
    return ApiError{.status = 415, .message = "browsers must send Content-Type: application/json"};
  return std::nullopt;
}

}  // namespace hearth
