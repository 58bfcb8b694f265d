#include "ui/panels/active_model.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ui/engine_host.h"

namespace hearth {

ActiveModel find_active_model(const PanelContext& context) {
  ActiveModel active;
  EngineHost& host = context.host;
  if (const EngineHost::Loading loading = host.loading(); loading.active) {
    active.reason = fmt::format("Loading {}", loading.what);
    active.progress = loading.total_bytes == 0 ? 0
                                               : static_cast<float>(loading.done_bytes) /
                                                     static_cast<float>(loading.total_bytes);
    return active;
  }
  Session* const session = host.session();
  Engine* const engine = host.engine();
  if (host.remote_calls() != nullptr && context.view.connected && !context.view.model.empty()) {
    active.name = context.view.model;
    const SchedulerLimits& limits = context.view.limits;
    active.model = ChatModel{.context = static_cast<uint32_t>(std::min<uint64_t>(
                                 limits.context, uint64_t{limits.pool_blocks} * kTokensPerBlock)),
                             .generation = host.generation(),
                             .remote = host.remote_calls()};
    return active;
  }
  if (session == nullptr || engine == nullptr) {
    if (engine != nullptr)
      active.reason =
          "The demo generates random tokens, so there is no model to chat with. Open one under "
          "Models.";
    else if (!context.view.failure.empty())
      active.reason = context.view.failure;
    else
      active.reason = "No model is open.";
    return active;
  }
  active.name = session->file().name();
  const Result<const ChatTemplate*> chat = session->chat_template();
  if (!chat.ok() || session->tokenizer() == nullptr) {
    active.reason = chat.ok() ? "This model has no vocabulary." : chat.error().message;
    return active;
  }
  active.model = ChatModel{.engine = engine,
                           .tokenizer = session->tokenizer(),
                           .chat = *chat,
                           .context = session->runner().options().limits.context,
                           .default_sampling = session->default_sampling(),
                           .generation = context.host.generation()};
  return active;
}

std::span<const char* const> chat_examples(std::string_view model) {
  static constexpr const char* kStories[] = {"Tell me a story about a fox and a kite.",
                                             "Write a story about a lost boat.",
                                             "Hello! Who are you?"};
  static constexpr const char* kQuestions[] = {"Explain how a rainbow forms.",
                                               "Write a short poem about the sea.",
                                               "Recommend three good books and say why."};
  const bool tells_stories =
      std::ranges::any_of(std::array{"default model", "storyteller", "hearth-tiny"},
                          [&](const char* name) { return model.find(name) != model.npos; });
  return tells_stories ? std::span<const char* const>(kStories) : kQuestions;
}

}  // namespace hearth
