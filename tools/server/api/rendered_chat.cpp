#include "tools/server/api/rendered_chat.h"

#include "engine/text/encode_chat.h"
#include "tools/server/api/server_state.h"
#include "tools/server/openai_request.h"

namespace hearth {
namespace {

// A template refuses what only the client can change.
Result<RenderedChat> render_chat(const ServedModel& model, const ApiRequest& request,
                                 const std::atomic<bool>& cancelled) {
  HEARTH_ASSIGN(const ChatTemplate* chat, model.chat_template);
  HEARTH_ASSIGN(const jinja::Rendering rendering,
                chat->render(request.messages, {.cancelled = &cancelled}));
  return RenderedChat{
      .text = rendering.text,
      .tokens = encode_rendering(model.tokenizer, rendering, chat->special_in_messages()).size()};
}

}  // namespace

std::optional<RenderedChat> render_chat_request(ServerState& server, Exchange& exchange,
                                                std::string_view body,
                                                std::span<const FieldName> names) {
  const ServedModel* const model = server.ready(exchange);
  if (model == nullptr) return std::nullopt;
  const auto parsed = parse_api_request(
      ApiKind::kChat, body,
      {.vocabulary = model->tokenizer.size(),
       .sampling = model->default_sampling,
       .encode = [&](std::string_view text) {
         return model->tokenizer.encode(text, {.add_bos = false});
       }});
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) {
    exchange.refuse(renamed(*error, names));
    return std::nullopt;
  }
  Result<RenderedChat> prompt = RenderedChat{};
  const auto render = [&](const std::atomic<bool>& cancelled) {
    prompt = render_chat(*model, std::get<ApiRequest>(parsed), cancelled);
  };
  if (!server.run_prompt_task(render, server.deadline(), exchange)) return std::nullopt;
  if (!prompt.ok()) {
    exchange.refuse(renamed({.message = prompt.error().message, .param = "messages"}, names));
    return std::nullopt;
  }
  return std::move(prompt).value();
}

}  // namespace hearth
