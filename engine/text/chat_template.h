// A conversation to the text a model was trained on, by the model's own Jinja template, which is
// part of a file from elsewhere: no template ends the program or keeps it busy (template_guard.h).
// Immutable after creation: any thread.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/text/vocabulary.h"
#include "runtime/result.h"

namespace hearth {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

struct ChatOptions {
  bool add_generation_prompt = true;
  // What time a template is told that asks for it; nothing: the clock's.
  std::optional<std::time_t> now = {};
};

class ChatTemplate {
 public:
  // The vocabulary's template, or ChatML where it has none; source() tells which. A template that
  // cannot be run is an error with its line.
  static Result<std::unique_ptr<ChatTemplate>> create(const Vocabulary& vocabulary);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // The text, to be encoded with parse_special. What the template itself refuses (roles that do not
  // alternate, say) comes back as an error in its words. A template that runs for too long, too
  // deep or into too much text is stopped with an error.
  Result<std::string> apply(std::span<const ChatMessage> messages,
                            const ChatOptions& options = {}) const;

  enum class Source { kModel, kChatMl };
  Source source() const { return source_; }

 private:
  struct Program;
  ChatTemplate() = default;

  std::unique_ptr<Program> program_;
  std::string bos_, eos_;
  Source source_ = Source::kChatMl;
};

// For the person at the terminal, of a template whose source is kChatMl.
inline constexpr std::string_view kChatMlNotice =
    "this model brings no chat template; ChatML is used";

}  // namespace hearth
