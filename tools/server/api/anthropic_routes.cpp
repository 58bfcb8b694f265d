// Anthropic's Messages API.
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "tools/server/api/anthropic_reply.h"
#include "tools/server/api/anthropic_request.h"
#include "tools/server/api/generate.h"
#include "tools/server/api/render_chat.h"
#include "tools/server/api/routes.h"
#include "tools/server/api/server_state.h"

namespace hearth {
namespace {

// The body of a chat completion, as text: the tree may be large.
std::variant<std::string, ApiError> chat_body(AnthropicCall call, std::string_view body) {
  const auto chat = parse_anthropic_request(call, body);
  if (const ApiError* error = std::get_if<ApiError>(&chat)) return *error;
  return std::get<nlohmann::ordered_json>(chat).dump();
}

void create_message(ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.ready(exchange);
  if (model == nullptr || !exchange.charge()) return;
  auto body = chat_body(AnthropicCall::kCreate, exchange.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&body)) return exchange.refuse(*error);
  generate(server, exchange,
           {.body = std::move(std::get<std::string>(body)),
            .adapter = std::make_unique<AnthropicReply>(fmt::format("msg_{}", server.next_id()),
                                                        model->name),
            .names = anthropic_field_names()});
}

void count_tokens(ServerState& server, Exchange& exchange) {
  if (server.ready(exchange) == nullptr || !exchange.charge()) return;
  const auto body = chat_body(AnthropicCall::kCountTokens, exchange.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&body)) return exchange.refuse(*error);
  if (const auto prompt =
          render_chat(server, exchange, std::get<std::string>(body), anthropic_field_names()))
    exchange.send({{"input_tokens", prompt->ids.size()}});
}

}  // namespace

std::span<const Route> anthropic_routes() {
  static constexpr Route kRoutes[] = {
      {.method = "POST",
       .path = "/v1/messages",
       .handle = create_message,
       .errors = ErrorShape::kAnthropic},
      {.method = "POST",
       .path = "/v1/messages/count_tokens",
       .handle = count_tokens,
       .errors = ErrorShape::kAnthropic},
  };
  return kRoutes;
}

}  // namespace hearth
