// hearth chat: a conversation in the terminal, or over a pipe.
#include "engine/session.h"
#include "tools/chat/chat_loop.h"
#include "tools/commands/command.h"
#include "tools/commands/model_options.h"

namespace hearth {
namespace {

class ChatCommand : public Command {
 public:
  ChatCommand() : Command("chat", "Talk to a model in the terminal") {}

  void declare(CLI::App& app) override {
    model_.declare(app);
    sampling_.declare(app);
    app.add_option("--system", system_, "The system prompt");
    app.add_option("-n,--tokens", tokens_, "The longest answer; 0: until the model ends");
    app.add_option("--load", load_, "Go on with a conversation that /save wrote");
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
