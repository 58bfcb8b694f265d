// A conversation: its messages, and the prompt they become. Plain data with a few operations; knows
// no terminal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "runtime/result.h"

namespace hearth {

// A prompt that leaves room in the context for an answer.
struct FittedPrompt {
  std::vector<std::uint32_t> ids;
  size_t left_out = 0;  // messages at the start of the conversation that no longer fit
};

class Conversation {
 public:
  const std::vector<ChatMessage>& messages() const { return messages_; }
  const std::string& system() const { return system_; }
  void set_system(std::string text) { system_ = std::move(text); }

  void add_user(std::string text) { messages_.push_back({"user", std::move(text)}); }
  void add_assistant(std::string text) { messages_.push_back({"assistant", std::move(text)}); }
  void add(ChatMessage message) { messages_.push_back(std::move(message)); }
  void clear() { messages_.clear(); }
  // Replaces the text of the oldest messages. REQUIRES: there are as many.
  void shorten(std::vector<std::string> texts);
  // Removes the last question and its answer, and returns the question; empty if there is none.
  std::string undo();
  // Empty if there is none.
  std::string last_question() const;
  // Removes the last answer, if there is one. False if there is no question to answer again.
  bool drop_answer();

  // Applies the template to the whole conversation, leaving out the oldest exchanges until `room`
  // tokens of the context are free. Fails if the template refuses the messages, or if the last one
  // does not fit even by itself.
  Result<FittedPrompt> prompt(const ChatTemplate& chat, const Tokenizer& tokenizer,
                              uint32_t context, uint32_t room) const;

  // The file is JSON: {"system": ..., "messages": [{"role", "content"}]}. save() writes a temporary
  // file first, so that a failure leaves the old one in place. load() refuses a file whose messages
  // do not alternate between "user" and "assistant", beginning with "user".
  Status save(const std::filesystem::path& path) const;
  static Result<Conversation> load(const std::filesystem::path& path);

 private:
  std::string system_;
  std::vector<ChatMessage> messages_;
};

}  // namespace hearth
