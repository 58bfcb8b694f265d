// hearth story: one short story from the built-in model. `hearth` alone does this if there is
// neither a display nor a terminal.
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/session.h"
#include "engine/text/encode_chat.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/commands/model_options.h"

namespace hearth {
namespace {

class StoryCommand : public Command {
 public:
  StoryCommand()
      : Command(CommandGroup::kRun, "story", "Tell a short story with the built-in model") {}

  void declare(Options& options) override {
    options.example("hearth story --about \"a dragon who cooks\"");
    options.add("--about TEXT", &about_, "What the story is about");
    sampling_.declare_seed(options);
    add_device_option(options, &model_.session.device);
  }

  Status run() override {
    model_.session.max_sequences = 1;
    HEARTH_ASSIGN(const auto session, model_.open());
    HEARTH_ASSIGN(const ChatTemplate* chat, session->chat_template());
    const ChatMessage message{"user", fmt::format("Tell me a story about {}.", about_)};
    HEARTH_ASSIGN(std::vector<TokenId> prompt,
                  encode_chat(*chat, *session->tokenizer(), std::span(&message, 1)));
    const SamplingOptions sampling = sampling_.choices().over(session->default_sampling());
    HEARTH_ASSIGN(TokenStream stream,
                  session->engine().submit({.prompt = std::move(prompt), .sampling = sampling}));
    while (const auto token = stream.next()) {
      fmt::print("{}", token->text);
      std::fflush(stdout);
    }
    fmt::print("{}\n", stream.end().text);
    if (stream.end().reason == FinishReason::kError)
      return Error{ErrorKind::kInternal, stream.end().message};
    return {};
  }

 private:
  ModelOptionsGroup model_;
  SamplingOptionsGroup sampling_;
  std::string about_ = "a fox and a lantern";
};

StoryCommand story_command;

}  // namespace
}  // namespace hearth
