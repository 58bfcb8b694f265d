// The conversation in the terminal: reads a line, then carries out a command or shows an answer
// while it is generated.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generation.h"
#include "engine/token_stream.h"
#include "tools/chat/chat_settings.h"
#include "tools/chat/conversation.h"
#include "tools/chat/line_reader.h"
#include "tools/chat/replaceable_model.h"
#include "tools/chat/when_full.h"
#include "tools/decoding_choices.h"

namespace hearth {

struct ChatLoopOptions {
  std::string system;  // the system prompt
  ChatSettings settings;
  std::vector<std::string> stop, ban;
  DecodingChoices decoding;
  std::shared_ptr<const grammar::Grammar> grammar;  // of every answer; null: any text
  WhenFull when_full = WhenFull::kDrop;
};

class ChatLoop {
 public:
  // The model outlives the loop.
  ChatLoop(ReplaceableModel& model, ChatLoopOptions options);

  void continue_with(Conversation conversation) { conversation_ = std::move(conversation); }

  // Returns when the input ends or the user leaves; an error if no model is left to answer.
  Status run();

 private:
  struct Command {
    std::string_view name, argument, about;  // without `about` it is not listed
    void (ChatLoop::*action)(std::string_view argument);
  };
  static std::span<const Command> commands();

  std::string model_text() const;  // its name, device and context
  void run_command(std::string_view line);
  Status answer();
  // The prompt for the next answer, after what is done if the context is full.
  Result<FittedPrompt> fitting_prompt();
  // Shows what the stream brings until it ends, and returns all of it. Ctrl-C cancels the request.
  std::string show_answer(TokenStream& stream);
  void show_status(const GenerationEnd& end);
  void say(std::string_view line) const;  // a remark of the program's, on stderr

  void reset(std::string_view);
  void undo(std::string_view);
  void retry(std::string_view);
  void edit(std::string_view);
  void system(std::string_view text);
  void set(std::string_view assignment);
  void switch_model(std::string_view name);
  void save(std::string_view path);
  void load(std::string_view path);
  void stats(std::string_view);
  void help(std::string_view);
  void leave(std::string_view);

  ReplaceableModel& model_;
  ChatSettings settings_;
  std::vector<std::string> stop_, ban_;
  const DecodingChoices decoding_;
  std::shared_ptr<const grammar::Grammar> grammar_;
  const WhenFull when_full_;
  Conversation conversation_;
  LineReader reader_;
  std::string text_to_edit_;
  bool answer_now_ = false, leaving_ = false;
  size_t reported_left_out_ = 0;  // messages that no longer fit, as last reported
  uint64_t answers_ = 0, tokens_ = 0;
  double seconds_ = 0;
};

}  // namespace hearth
