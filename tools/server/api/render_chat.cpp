#include "tools/server/api/render_chat.h"

#include "tools/server/api/server_state.h"
#include "tools/server/openai_request.h"

namespace hearth {

std::optional<ChatPrompt> render_chat(ServerState& server, Exchange& exchange,
                                      std::string_view body, std::span<const FieldName> names) {
  const ServedModel* const model = server.ready(exchange);
  if (model == nullptr) return std::nullopt;
  const auto parsed = parse_api_request(ApiKind::kChat, body,
                                        {.vocabulary = model->tokenizer.size(),
                                         .sampling = model->default_sampling,
                                         .encode = [&](std::string_view text) {
                                           return model->tokenizer.encode(text, {.add_bos = false});
                                         }});
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) {
    exchange.refuse(renamed(*error, names));
    return std::nullopt;
  }
  Result<ChatPrompt> prompt = ChatPrompt{};
  const auto render = [&](const std::atomic<bool>& cancelled) {
    prompt = make_chat_prompt(*model, std::get<ApiRequest>(parsed), {.cancelled = &cancelled});
  };
  if (!server.run_prompt_task(render, server.deadline(), exchange)) return std::nullopt;
  // A template refuses what only the client can change.
  if (!prompt.ok()) {
    exchange.refuse(renamed({.message = prompt.error().message, .param = "messages"}, names));
    return std::nullopt;
  }
  return std::move(prompt).value();
}

}  // namespace hearth
