// OpenAI's Responses API: create, look up and delete responses.
#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "tools/server/api/generate.h"
#include "tools/server/api/input_items.h"
#include "tools/server/api/responses_reply.h"
#include "tools/server/api/responses_request.h"
#include "tools/server/api/routes.h"
#include "tools/server/api/server_state.h"

namespace hearth {
namespace {

constexpr std::string_view kResponsePath = "/v1/responses/";
constexpr std::string_view kInputItems = "/input_items";  // after the id

// What the body asks for, without the body's JSON, which may be large.
std::variant<GenerationCall, ApiError> response_call(ServerState& server, const ServedModel& model,
                                                     std::string_view body) {
  auto parsed =
      parse_responses_request(body, [&](const std::string& id) -> std::optional<std::string> {
        std::optional<StoredResponse> stored = server.responses().find(id);
        if (!stored) return std::nullopt;
        return std::move(stored->conversation);
      });
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  ResponsesRequest& asked = std::get<ResponsesRequest>(parsed);
  // Every client that knows an id may read the response, so ids must not be guessable.
  ResponsesReply::Head head{.id = fmt::format("resp_{}{}", server.next_id(), server.next_id()),
                            .model = model.name,
                            .created = unix_seconds(),
                            .echo = std::move(asked.echo),
                            .conversation = asked.store ? asked.conversation.dump() : ""};
  return GenerationCall{.body = asked.chat.dump(),
                        .adapter = std::make_unique<ResponsesReply>(
                            std::move(head), asked.store ? &server.responses() : nullptr),
                        .names = responses_field_names()};
}

void create_response(ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.ready(exchange);
  if (model == nullptr || !exchange.charge()) return;
  auto call = response_call(server, *model, exchange.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&call)) return exchange.refuse(*error);
  generate(server, exchange, std::move(std::get<GenerationCall>(call)));
}

bool asks_for_input(const Exchange& exchange) {
  return exchange.request.path.ends_with(kInputItems);
}

std::string id_in_path(const Exchange& exchange) {
  std::string id = exchange.request.path.substr(kResponsePath.size());
  if (asks_for_input(exchange)) id.resize(id.size() - std::min(id.size(), kInputItems.size()));
  return id;
}

void refuse_unknown(Exchange& exchange) {
  exchange.refuse(
      {.status = 404,
       .message = fmt::format("there is no response '{}'", id_in_path(exchange).substr(0, 64)),
       .code = "response_not_found"});
}

void show_response(ServerState& server, Exchange& exchange) {
  const auto stored = server.responses().find(id_in_path(exchange));
  if (!stored) return refuse_unknown(exchange);
  if (!asks_for_input(exchange))
    return exchange.reply.send(200, "application/json", stored->object);
  const auto page =
      list_page(input_items(nlohmann::json::parse(stored->conversation), id_in_path(exchange)),
                exchange.request.query);
  if (const ApiError* error = std::get_if<ApiError>(&page)) return exchange.refuse(*error);
  exchange.send(std::get<nlohmann::json>(page));
}

void delete_response(ServerState& server, Exchange& exchange) {
  const std::string id = id_in_path(exchange);
  if (asks_for_input(exchange)) return refuse_unknown(exchange);
  if (!server.responses().remove(id)) return refuse_unknown(exchange);
  exchange.send({{"id", id}, {"object", "response.deleted"}, {"deleted", true}});
}

}  // namespace

std::span<const Route> responses_routes() {
  static constexpr Route kRoutes[] = {
      {.method = "POST", .path = "/v1/responses", .handle = create_response},
      {.method = "GET", .path = kResponsePath, .handle = show_response},  // and the response's id
      {.method = "DELETE", .path = kResponsePath, .handle = delete_response},
  };
  return kRoutes;
}

}  // namespace hearth
