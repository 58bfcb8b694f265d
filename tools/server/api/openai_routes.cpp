// OpenAI's API: models, chats and completions. And /tokenize and /detokenize, as other servers have
// them.
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/server/api/generate.h"
#include "tools/server/api/routes.h"
#include "tools/server/api/server_state.h"
#include "tools/server/model_card.h"
#include "tools/server/openai_request.h"

namespace hearth {
namespace {

using nlohmann::json;

constexpr std::string_view kModelPath = "/v1/models/";

json card_json(const ServerState& server, const ServedModel& model) {
  return model_json({.id = model.name,
                     .created = server.started(),
                     .limits = model.engine.limits(),
                     .sampling = model.default_sampling,
                     .example = model.example});
}

void list_models(ServerState& server, Exchange& exchange) {
  if (const ServedModel* const model = server.loaded(exchange))
    exchange.send({{"object", "list"}, {"data", json::array({card_json(server, *model)})}});
}

void show_model(ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.loaded(exchange);
  if (model == nullptr) return;
  // A model's name may contain slashes.
  const std::string_view name = std::string_view(exchange.request.path).substr(kModelPath.size());
  const std::string asked = percent_decoded(name);
  if (asked == model->name) return exchange.send(card_json(server, *model));
  constexpr size_t kLongestShownName = 64;  // bytes
  exchange.refuse({.status = 404,
                   .message = fmt::format("there is no model '{}'; this server has {}",
                                          asked.substr(0, kLongestShownName), model->name),
                   .param = "model",
                   .code = "model_not_found"});
}

void tokenize_text(ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.ready(exchange);
  if (model == nullptr || !exchange.charge()) return;
  const auto parsed = parse_tokenize_request(exchange.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return exchange.refuse(*error);
  const TokenizeRequest& asked = std::get<TokenizeRequest>(parsed);
  const EncodeOptions options{.add_bos = asked.add_special, .parse_special = asked.parse_special};
  std::string body;
  const auto encode = [&](const std::atomic<bool>&) {
    // A list of JSON values would take five times the memory.
    body = fmt::format("{{\"tokens\":[{}]}}",
                       fmt::join(model->tokenizer.encode(asked.content, options), ","));
  };
  if (!server.run_prompt_task(encode, server.deadline(), exchange)) return;
  exchange.reply.send(200, "application/json", body);
}

void detokenize_ids(ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.ready(exchange);
  if (model == nullptr || !exchange.charge()) return;
  const auto parsed = parse_detokenize_request(exchange.request.body, model->tokenizer.size());
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return exchange.refuse(*error);
  exchange.send({{"content", model->tokenizer.decode(std::get<std::vector<uint32_t>>(parsed))}});
}

void generate_openai(ApiKind kind, ServerState& server, Exchange& exchange) {
  if (server.ready(exchange) == nullptr || !exchange.charge()) return;
  generate(server, exchange, {.kind = kind, .body = std::move(exchange.request.body)});
}
void complete_prompt(ServerState& server, Exchange& exchange) {
  generate_openai(ApiKind::kCompletion, server, exchange);
}
void complete_chat(ServerState& server, Exchange& exchange) {
  generate_openai(ApiKind::kChat, server, exchange);
}

}  // namespace

std::span<const Route> openai_routes() {
  static constexpr Route kRoutes[] = {
      {.method = "GET", .path = "/v1/models", .handle = list_models},
      {.method = "GET", .path = kModelPath, .handle = show_model},  // and the model's name
      {.method = "POST", .path = "/v1/completions", .handle = complete_prompt},
      {.method = "POST", .path = "/v1/chat/completions", .handle = complete_chat},
      {.method = "POST", .path = "/tokenize", .handle = tokenize_text},
      {.method = "POST", .path = "/detokenize", .handle = detokenize_ids},
  };
  return kRoutes;
}

}  // namespace hearth
