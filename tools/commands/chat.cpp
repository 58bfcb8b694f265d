// hearth chat: a conversation in the terminal, or over a pipe.
#include <optional>

#include "tools/chat/chat_loop.h"
#include "tools/chat/replaceable_model.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/commands/decoding_options.h"
#include "tools/commands/grammar_options.h"
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
    options.add("-n,--tokens N", &tokens_, "Longest answer in tokens; 0 lets the model decide")
        .alias("--n-predict");
    options.add("--load FILE", &load_, "Continue a conversation that /save wrote")
        .check(check_file_name);
    options
        .add("--when-full WORD", &when_full_,
             "When the context is full: drop the oldest messages, compress all but the last, or "
             "stop answering")
        .one_of({"drop", "compress", "stop"});
    model_.declare(options);
    model_.declare_speculation(options);
    model_.declare_contrast(options);
    sampling_.declare(options);
    options.group("Structured output");
    grammar_.declare(options);
    decoding_.declare(options);
    options.check([this] { return decoding_.problem(sampling_.choices().top_k); });
  }

  Status run() override {
    std::optional<Conversation> loaded;
    if (!load_.empty()) {
      HEARTH_ASSIGN(loaded, Conversation::load(load_));
    }
    HEARTH_ASSIGN(auto grammar, grammar_.compile());
    model_.session.max_sequences = decoding_.choices().sequences();
    model_.session.candidate_rows =
        decoding_.choices().candidates(sampling_.choices().top_k.value_or(0));
    if (when_full_ == "compress") model_.session.scored_rows = kScoredRows;
    const ModelOpener opener{
        .find =
            [this](const std::string& name) {
              model_.model = name;
              return model_.open_file();
            },
        .load = [this](std::unique_ptr<ModelFile> file) { return model_.open(std::move(file)); }};
    HEARTH_ASSIGN(ReplaceableModel model, ReplaceableModel::open(opener, model_.model));
    ChatLoop loop(model, {.system = system_,
                          .settings = {.sampling = sampling_.choices(), .max_tokens = tokens_},
                          .stop = sampling_.stop,
                          .ban = sampling_.ban,
                          .decoding = decoding_.choices(),
                          .grammar = std::move(grammar),
                          .when_full = when_full(when_full_)});
    if (loaded) loop.continue_with(*std::move(loaded));
    return loop.run();
  }

 private:
  ModelOptionsGroup model_;
  SamplingOptionsGroup sampling_;
  DecodingOptionsGroup decoding_;
  GrammarOptionsGroup grammar_;
  std::string system_, load_, when_full_ = "drop";
  uint32_t tokens_ = 0;
};

ChatCommand chat_command;

}  // namespace
}  // namespace hearth
