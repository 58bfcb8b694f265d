// A conversation: its messages, and the prompt they make. Plain data with a few operations; no
// terminal here.
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

// A prompt that leaves room for an answer.
struct ChatPrompt {
  std::vector<std::uint32_t> ids;
  size_t left_out = 0;  // messages at the beginning that no longer fit
};

class Conversation {
 public:
  const std::vector<ChatMessage>& messages() const { return messages_; }
  const std::string& system() const { return system_; }
  void set_system(std::string text) { system_ = std::move(text); }

  void add_user(std::string text) { messages_.push_back({"user", std::move(text)}); }
  void add_assistant(std::string text) { messages_.push_back({"assistant", std::move(text)}); }
  void clear() { messages_.clear(); }
  // Takes back the last question with its answer, and returns the question; empty if there is none.
  std::string undo();
  // Empty if there is none.
  std::string last_question() const;
  // Takes back the last answer, if there is one. False if there is no question to answer again.
  bool drop_answer();

  // The whole conversation through the template, with the oldest exchanges left out until `room`
  // tokens of the context are free. Fails where the template refuses, or where even the last
  // message does not fit.
  Result<ChatPrompt> prompt(const ChatTemplate& chat, const Tokenizer& tokenizer, uint32_t context,
                            uint32_t room) const;

  // JSON: {"system": ..., "messages": [{"role", "content"}]}. Written beside the file first, so
  // that a failure leaves the old one. What load() gives begins with a question, and questions and
  // answers take turns.
  Status save(const std::filesystem::path& path) const;
  static Result<Conversation> load(const std::filesystem::path& path);

 private:
  std::string system_;
  std::vector<ChatMessage> messages_;
};

}  // namespace hearth
