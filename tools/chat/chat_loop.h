// The conversation in the terminal: reads a line, answers it while it is generated, obeys commands.
#pragma once

#include <string>
#include <string_view>

#include "engine/generation.h"
#include "engine/session.h"
#include "tools/chat/conversation.h"
#include "tools/chat/line_reader.h"

namespace hearth {

struct ChatLoopOptions {
  std::string system;
  SamplingOptions sampling;
  std::vector<std::string> stop;
  uint32_t max_tokens = 0;  // of an answer; 0: until the model ends or the context is full
};

class ChatLoop {
 public:
  // The session has a vocabulary and `chat` is its template; both outlive the loop.
  ChatLoop(Session& session, const ChatTemplate& chat, ChatLoopOptions options);

  void go_on_with(Conversation conversation) { conversation_ = std::move(conversation); }

  // Until the input ends or the user leaves.
  Status run();

 private:
  struct Command {
    std::string_view name, argument, about;
    void (ChatLoop::*action)(std::string_view argument);
  };
  static std::span<const Command> commands();

  void greet() const;
  void obey(std::string_view line);
  Status answer();
  void show_status(const GenerationEnd& end);
  void say(std::string_view line) const;  // about the conversation, not part of it

  void reset(std::string_view);
  void undo(std::string_view);
  void retry(std::string_view);
  void edit(std::string_view);
  void system(std::string_view text);
  void set(std::string_view assignment);
  void save(std::string_view path);
  void load(std::string_view path);
  void stats(std::string_view);
  void help(std::string_view);
  void quit(std::string_view);

  Session& session_;
  const ChatTemplate& chat_;
  ChatLoopOptions options_;
  Conversation conversation_;
  LineReader reader_;
  std::string text_to_edit_;
  bool answer_now_ = false, leaving_ = false;
  size_t left_out_ = 0;  // that the user was told of
  uint64_t answers_ = 0, tokens_ = 0;
  double seconds_ = 0;
};

}  // namespace hearth
