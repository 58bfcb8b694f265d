// Turns a conversation into the text a model was trained on, by the model's own Jinja template. The
// template comes from a file of unknown origin, so it runs in a sandbox with limits on time, memory
// and output (engine/text/jinja). Parsed once; immutable afterwards, so any thread may use it.
#pragma once

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/rendering.h"
#include "engine/text/vocabulary.h"
#include "runtime/result.h"

namespace hearth {

// A call that an assistant's message makes.
struct ChatToolCall {
  std::string id, name;
  std::string arguments;  // JSON
};

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
  // Of an assistant: what led up to the content, and the calls it makes.
  std::string reasoning = {};
  std::vector<ChatToolCall> tool_calls = {};
  // Of a tool: the call that the content answers, and the function's name.
  std::string tool_call_id = {}, name = {};
};

struct ChatOptions {
  bool add_generation_prompt = true;
  // The time that strftime_now() tells a template. Unset: the clock's.
  std::optional<std::time_t> now = {};
  // Tools in OpenAI's form, and an object of further variables for the template, such as
  // {"enable_thinking": false}. Null: none.
  const nlohmann::ordered_json* tools = nullptr;
  const nlohmann::ordered_json* variables = nullptr;
  // Any thread may set it to end a rendering early, with an error.
  const std::atomic<bool>* cancelled = nullptr;
  std::chrono::milliseconds time_limit{2000};
};

class ChatTemplate {
 public:
  // The vocabulary's template, or ChatML if it has none; source() says which. A template that
  // cannot be parsed is an error that names the line. `special_in_messages` is for encode_chat():
  // whether "<|im_end|>" written in a message becomes that token. Off, a message cannot end its own
  // turn or begin another; on, it can, as in most other runtimes.
  static Result<std::unique_ptr<ChatTemplate>> create(const Vocabulary& vocabulary,
                                                      bool special_in_messages = false);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // The prompt, and which of its bytes come from the template and which from the conversation. If
  // the template refuses the conversation (roles that do not alternate, say), the error has the
  // template's words. A template that exceeds a limit ends with an error. `messages` is a list of
  // messages in OpenAI's form.
  Result<jinja::Rendering> render(const nlohmann::ordered_json& messages,
                                  const ChatOptions& options = {}) const;
  Result<jinja::Rendering> render(std::span<const ChatMessage> messages,
                                  const ChatOptions& options = {}) const;
  // The text alone. To encode it, use encode_chat() instead, which knows the messages' bytes.
  Result<std::string> apply(std::span<const ChatMessage> messages,
                            const ChatOptions& options = {}) const;

  enum class Source { kModel, kChatMl };
  Source source() const { return source_; }
  bool special_in_messages() const { return special_in_messages_; }

 private:
  struct Parts;
  ChatTemplate() = default;

  std::unique_ptr<const Parts> parts_;
  Source source_ = Source::kChatMl;
  bool special_in_messages_ = false;
};

// Shown to the user if the template's source is kChatMl.
inline constexpr std::string_view kChatMlNotice =
    "this model brings no chat template; ChatML is used";

}  // namespace hearth
