// hearth chat: a conversation in the terminal, or over a pipe.
#include "engine/session.h"
#include "tools/chat/chat_loop.h"
#include "tools/commands/command.h"
#include "tools/commands/model_options.h"

namespace hearth {
namespace {

class ChatCommand : public Command {
 public:
  ChatCommand() : Command(CommandGroup::kRun, "chat", "Talk to a model in the terminal") {}

  void declare(Options& options) override {
    options.example("hearth chat -m model.gguf --system \"Answer in one sentence.\"");
    options.group("Conversation");
    options.add("--system TEXT", &system_, "System prompt");
    options.add("-n,--tokens N", &tokens_, "Longest answer in tokens; 0 lets the model decide");
    options.add("--load FILE", &load_, "Continue a conversation that /save wrote");
    model_.declare(options);
    sampling_.declare(options);
  }

  Status run() override {
    model_.session.max_sequences = 1;
    HEARTH_ASSIGN(const auto session, model_.open());
    HEARTH_ASSIGN(const ChatTemplate* chat, session->chat_template());
    sampling_.settle_seed();
    ChatLoop loop(*session, *chat,
                  {.system = system_,
                   .sampling = sampling_.options,
                   .stop = sampling_.stop,
                   .max_tokens = tokens_});
    if (!load_.empty()) {
      HEARTH_ASSIGN(Conversation conversation, Conversation::load(load_));
      loop.go_on_with(std::move(conversation));
    }
    return loop.run();
  }

 private:
  ModelOptionsGroup model_;
  SamplingOptionsGroup sampling_;
  std::string system_, load_;
  uint32_t tokens_ = 0;
};

ChatCommand chat_command;

}  // namespace
}  // namespace hearth
