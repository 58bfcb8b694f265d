// An answer taken apart: what the model writes for the user, the reasoning before it, and calls of
// tools. Reads with the server's parser (engine/text/tool_calls), while the answer is being
// generated. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tool_calls/reply_parser.h"
#include "engine/text/tool_calls/reply_style.h"
#include "ui/data/chat.h"

namespace hearth {

struct ChatPart {
  enum class Kind : std::uint8_t { kText, kReasoning, kCall };
  Kind kind = Kind::kText;
  std::size_t begin = 0, end = 0;  // of text and reasoning: bytes of the answer's text
  // Of a call. Arguments are indented once they are complete. If they are not a JSON object, they
  // are as the model wrote them, and the warning says so.
  std::string name, arguments, warning;
  bool closed = false;  // nothing will be added to it
};

// How the answers of a model are to be read. `prompt_end` is the end of the prompt's text, which
// may begin the reasoning.
ChatReplyForm reply_form(const ReplyStyle& style, std::string_view prompt_end);

class ChatParts {
 public:
  // Reads what is new. Once the answer has `ended`, nothing may be added to it. REQUIRES: the form
  // is the same as before, and the text begins with the text of the previous call.
  void read(const ChatReply& reply, bool ended);
  const std::vector<ChatPart>& parts() const { return parts_; }

 private:
  void take(const std::vector<ReplyEvent>& events, const std::string& text);
  void add_text(ChatPart::Kind kind, std::string_view added, const std::string& text);

  std::optional<ReplyParser> parser_;
  std::size_t read_ = 0;  // bytes
  bool ended_ = false;
  std::vector<ChatPart> parts_;
};

// The parts of an answer that will not grow.
std::vector<ChatPart> parts_of(const ChatReply& reply);
// How many tokens lie in the part, at least partly.
std::size_t tokens_in(const ChatReply& reply, const ChatPart& part);
// What the answer says to the user; all of it if it says nothing.
std::string answer_text(const ChatReply& reply);

}  // namespace hearth
