#include "ui/panels/chat_partner.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ui/engine_host.h"

namespace hearth {

ChatPartner find_chat_partner(const PanelContext& context) {
  ChatPartner partner;
  EngineHost& host = context.host;
  if (const EngineHost::Loading loading = host.loading(); loading.active) {
    partner.reason = fmt::format("Loading {}", loading.what);
    partner.progress = loading.total_bytes == 0 ? 0
                                                : static_cast<float>(loading.done_bytes) /
                                                      static_cast<float>(loading.total_bytes);
    return partner;
  }
  Session* const session = host.session();
  Engine* const engine = host.engine();
  if (session == nullptr || engine == nullptr) {
    if (engine != nullptr)
      partner.reason =
          "The demo makes its tokens up, so there is nobody to talk to. Open a model to chat.";
    else if (!context.view.failure.empty())
      partner.reason = context.view.failure;
    else if (context.view.connected)
      partner.reason =
          "This is an engine elsewhere: it is watched from here, and has a chat page of its own.";
    else
      partner.reason = "No model is open.";
    return partner;
  }
  partner.name = session->file().name();
  const Result<const ChatTemplate*> chat = session->chat_template();
  if (!chat.ok() || session->tokenizer() == nullptr) {
    partner.reason = chat.ok() ? "This model has no vocabulary." : chat.error().message;
    return partner;
  }
  partner.model = ChatModel{.engine = engine,
                            .tokenizer = session->tokenizer(),
                            .chat = *chat,
                            .context = session->runner().options().limits.context,
                            .generation = context.view.generation};
  return partner;
}

std::span<const char* const> chat_examples(std::string_view model) {
  static constexpr const char* kStories[] = {"Tell me a story about a fox and a kite.",
                                             "Write a story about a lost boat.",
                                             "Hello! Who are you?"};
  static constexpr const char* kQuestions[] = {"Explain how a rainbow comes about.",
                                               "Write a short poem about the sea.",
                                               "Name three good books, and why."};
  const bool tells_stories =
      std::ranges::any_of(std::array{"default model", "storyteller", "hearth-tiny"},
                          [&](const char* name) { return model.find(name) != model.npos; });
  return tells_stories ? std::span<const char* const>(kStories) : kQuestions;
}

}  // namespace hearth
