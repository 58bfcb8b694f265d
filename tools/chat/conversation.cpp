#include "tools/chat/conversation.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "engine/text/encode_chat.h"
#include "runtime/host/replace_file.h"
#include "tools/read_text.h"

namespace hearth {

std::string Conversation::undo() {
  while (!messages_.empty() && messages_.back().role != "user") messages_.pop_back();
  if (messages_.empty()) return {};
  std::string question = std::move(messages_.back().content);
  messages_.pop_back();
  return question;
}

std::string Conversation::last_question() const {
  const auto found =
      std::find_if(messages_.rbegin(), messages_.rend(),
                   [](const ChatMessage& message) { return message.role == "user"; });
  return found == messages_.rend() ? std::string() : found->content;
}

void Conversation::shorten(std::vector<std::string> texts) {
  for (size_t i = 0; i < texts.size(); ++i) messages_[i].content = std::move(texts[i]);
}

bool Conversation::drop_answer() {
  if (last_question().empty()) return false;
  while (messages_.back().role != "user") messages_.pop_back();
  return true;
}

Result<FittedPrompt> Conversation::prompt(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                          uint32_t context, uint32_t room) const {
  FittedPrompt prompt;
  while (true) {
    std::vector<ChatMessage> messages;
    if (!system_.empty()) messages.push_back({"system", system_});
    messages.insert(messages.end(), messages_.begin() + static_cast<long>(prompt.left_out),
                    messages_.end());
    HEARTH_ASSIGN(prompt.ids, encode_chat(chat, tokenizer, messages));
    if (prompt.ids.size() + room <= context) return prompt;
    // A question is left out together with its answer, so that roles still alternate.
    size_t next = prompt.left_out + 1;
    while (next < messages_.size() && messages_[next].role != "user") ++next;
    if (next >= messages_.size()) break;
    prompt.left_out = next;
  }
  // The last message alone may leave less room for the answer, but not none.
  if (prompt.ids.size() < context) return prompt;
  return Error{ErrorKind::kInvalid,
               fmt::format("the message has {} tokens, but the context holds {}", prompt.ids.size(),
                           context)};
}

Status Conversation::save(const std::filesystem::path& path) const {
  nlohmann::json messages = nlohmann::json::array();
  for (const ChatMessage& message : messages_)
    messages.push_back({{"role", message.role}, {"content", message.content}});
  const nlohmann::json all = {{"system", system_}, {"messages", messages}};
  return replace_file(path,
                      all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
}

Result<Conversation> Conversation::load(const std::filesystem::path& path) {
  const auto error = [&](std::string_view what) {
    return Error{ErrorKind::kInvalid, fmt::format("{}: {}", path.string(), what)};
  };
  HEARTH_ASSIGN(const std::string text, read_text_file(path));
  const auto all = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object() || !all.contains("messages") || !all["messages"].is_array())
    return error("not a conversation saved by hearth chat");
  Conversation conversation;
  if (all.contains("system") && all["system"].is_string())
    conversation.system_ = all["system"].get<std::string>();
  for (const nlohmann::json& message : all["messages"]) {
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string() ||
        !message.contains("content") || !message["content"].is_string())
      return error("a message lacks its role or its content");
    ChatMessage read{message["role"].get<std::string>(), message["content"].get<std::string>()};
    const bool question = conversation.messages_.size() % 2 == 0;
    if (read.role != (question ? "user" : "assistant"))
      return error("messages of user and assistant do not alternate");
    conversation.messages_.push_back(std::move(read));
  }
  return conversation;
}

}  // namespace hearth
