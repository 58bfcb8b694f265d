// hearth run: one completion.
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "engine/session.h"
#include "engine/text/encode_chat.h"
#include "runtime/log.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/commands/model_options.h"

namespace hearth {
namespace {

class RunCommand : public Command {
 public:
  RunCommand() : Command("run", "Complete a text") {}

  void declare(Options& options) override {
    options.example("hearth run -p \"Once upon a time\" -n 100");
    options.example("hearth run -m model.gguf --chat -p \"Why is the sky blue?\"");
    options.group("Prompt");
    options.add("-p,--prompt TEXT", &prompt_, "The text to continue").required();
    const Option& chat = options.add(
        "--chat", &chat_, "Answer the prompt as a chat message, through the chat template");
    options.add("--system TEXT", &system_, "With --chat: the system prompt").needs(chat);
    options.group("Output");
    options.add("-n,--tokens N", &tokens_, "Most tokens to generate; 0 lets the model decide");
    const Option& json = add_json_option(options, &json_);
    options
        .add("--logprobs N", &logprobs_, "With --json: the N most likely tokens at each position")
        .range(0, params::kMaxTopLogprobs)
        .needs(json)
        .advanced();
    options.add("--ignore-eos", &ignore_end_, "Continue after the model's end token").advanced();
    model_.declare(options);
    sampling_.declare(options);
  }

  Status run() override {
    model_.session.max_sequences = 1;
    HEARTH_ASSIGN(const auto session, model_.open());
    if (session->tokenizer() == nullptr)
      return Error{ErrorKind::kUnsupported,
                   fmt::format("{} has no vocabulary, so it cannot read a text; "
                               "hearth logits takes ids",
                               session->file().name())};
    HEARTH_ASSIGN(GenerationRequest request, make_request(*session));
    const uint32_t prompt_tokens = static_cast<uint32_t>(request.prompt.size());
    HEARTH_ASSIGN(const auto stream, session->engine().submit(std::move(request)));
    if (!json_ && !chat_) show(prompt_);

    nlohmann::json ids = nlohmann::json::array(), probabilities = nlohmann::json::array();
    std::string text;
    while (const auto token = stream->next()) {
      ids.push_back(token->id);
      if (logprobs_ > 0) probabilities.push_back(to_json(*session, *token));
      text += token->text;
      show(token->text);
    }
    const GenerationEnd& end = stream->end();
    text += end.text;
    show(end.text);
    if (end.reason == FinishReason::kError) return Error{ErrorKind::kInternal, end.message};
    if (!json_) {
      show("\n");
      return {};
    }
    const GenerationTimes& times = end.times;
    const double after_first = times.last_token - times.first_token;
    nlohmann::json result = {
        {"text", text},
        {"ids", ids},
        {"finish_reason", finish_reason_name(end.reason)},
        {"prompt_tokens", prompt_tokens},
        {"tokens", end.generated_tokens},
        {"ttft_seconds", times.first_token},
        {"tokens_per_s", after_first > 0 ? (end.generated_tokens - 1) / after_first : 0.0}};
    if (logprobs_ > 0) result["logprobs"] = probabilities;
    fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return {};
  }

 private:
  Result<GenerationRequest> make_request(const Session& session) {
    sampling_.settle_seed();
    sampling_.options.top_logprobs = logprobs_;
    GenerationRequest request{.sampling = sampling_.options,
                              .max_tokens = tokens_,
                              .stop = sampling_.stop,
                              .ignore_end = ignore_end_};
    if (chat_) {
      HEARTH_ASSIGN(const ChatTemplate* chat, session.chat_template());
      if (chat->source() == ChatTemplate::Source::kChatMl) log_line(kChatMlNotice);
      std::vector<ChatMessage> messages;
      if (!system_.empty()) messages.push_back({"system", system_});
      messages.push_back({"user", prompt_});
      HEARTH_ASSIGN(request.prompt, encode_chat(*chat, *session.tokenizer(), messages));
    } else {
      request.prompt = session.tokenizer()->encode(prompt_);
    }
    return request;
  }

  void show(const std::string& text) const {
    if (json_) return;
    fmt::print("{}", text);
    std::fflush(stdout);
  }

  static nlohmann::json to_json(const Session& session, const GeneratedToken& token) {
    nlohmann::json top = nlohmann::json::array();
    for (const params::TokenLogprob& entry : token.top)
      if (entry.id != params::kNoToken)
        top.push_back({{"id", entry.id},
                       {"text", session.tokenizer()->piece(entry.id, true)},
                       {"logprob", entry.logprob}});
    return {{"id", token.id}, {"logprob", token.logprob}, {"top", top}};
  }

  ModelOptionsGroup model_;
  SamplingOptionsGroup sampling_;
  std::string prompt_, system_;
  uint32_t tokens_ = 0, logprobs_ = 0;
  bool chat_ = false, ignore_end_ = false, json_ = false;
};

RunCommand run_command;

}  // namespace
}  // namespace hearth
