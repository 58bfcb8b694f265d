// hearth run: one completion.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

#include "engine/model_library.h"
#include "engine/session.h"
#include "engine/text/encode_chat.h"
#include "engine/weights/in_quotes.h"
#include "runtime/log.h"
#include "tools/commands/beam_options.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/commands/decoding_options.h"
#include "tools/commands/grammar_options.h"
#include "tools/commands/model_options.h"
#include "tools/count_of.h"
#include "tools/output_stats.h"
#include "tools/read_text.h"

namespace hearth {
namespace {

// The tokens that speculation proposed for the run.
struct Guesses {
  uint64_t proposed = 0, accepted = 0;
  uint64_t steps = 0;  // that verified guesses

  // Each of these steps also gives the token after the accepted ones.
  double tokens_per_step() const {
    return steps == 0 ? 1 : 1 + static_cast<double>(accepted) / static_cast<double>(steps);
  }
};

// Empty without speculation.
std::optional<Guesses> guesses_of(Session& session) {
  if (session.options().speculation.method == SpeculationMethod::kNone) return std::nullopt;
  const Metrics& metrics = session.engine().metrics();
  return Guesses{.proposed = metrics.proposed_tokens.value(),
                 .accepted = metrics.accepted_tokens.value(),
                 .steps = metrics.judged_steps.value()};
}

std::string guesses_line(const Guesses& guesses) {
  if (guesses.steps == 0) return "guesses: none made";
  return fmt::format("guesses: {} made, {} accepted; {:.2f} tokens per step with guesses",
                     guesses.proposed, guesses.accepted, guesses.tokens_per_step());
}

nlohmann::json stats_json(const OutputStats& stats) {
  return {{"distinct_1", stats.distinct[0]},
          {"distinct_2", stats.distinct[1]},
          {"distinct_3", stats.distinct[2]},
          {"repetition_rate", stats.repetition},
          {"mean_surprisal", stats.surprisal}};
}

class RunCommand : public Command {
 public:
  RunCommand() : Command(CommandGroup::kRun, "run", "Complete a prompt") {}

  void declare(Options& options) override {
    options.example("hearth run \"Once upon a time\" -n 100");
    options.example("hearth run -m model.gguf --chat \"Why is the sky blue?\"");
    options.example("hearth run --json-schema person.json \"Describe a person.\" --chat");
    const Option& word =
        options.add("PROMPT", &words_, "The text to continue; - reads it from standard input");
    options.group("Prompt");
    const Option& text = options.add("-p,--prompt TEXT", &prompt_, "The prompt as an option");
    const Option& file =
        options.add("-f,--file FILE", &file_, "Read the prompt from a file").check(check_file_name);
    options.exactly_one(
        {&word, &text, &file},
        "no prompt: hearth run \"Once upon a time\", -f FILE, or - to read standard "
        "input");
    options.check([this] {
      std::string problem = problem_with_words();
      if (problem.empty()) problem = beams_.problem();
      return problem.empty() ? decoding_.problem(sampling_.choices().top_k) : problem;
    });
    const Option& chat = options.add(
        "--chat", &chat_, "Answer the prompt as a chat message, through the chat template");
    options.add("--system TEXT", &system_, "With --chat: the system prompt").needs(chat);
    options.group("Output");
    options.add("-n,--tokens N", &tokens_, "Maximum tokens to generate; 0 lets the model decide")
        .alias("--n-predict");
    const Option& json = add_json_option(options, &json_);
    options
        .add("--logprobs N", &logprobs_, "With --json: the N most likely tokens at each position")
        .range(0, kMaxTopLogprobs)
        .needs(json)
        .advanced();
    options
        .add("--stats", &stats_,
             "Report how much the output repeats itself and, with --speculate, how many guesses "
             "were right: on stderr, and with --json also in the object")
        .advanced();
    grammar_.declare(options);
    options.add("--ignore-eos", &ignore_end_, "Continue after the model's end token").advanced();
    model_.declare(options);
    model_.declare_ranks(options);
    model_.declare_speculation(options);
    model_.declare_contrast(options);
    sampling_.declare(options);
    decoding_.declare(options);
    beams_.declare(options);
  }

  Status run() override {
    if (model_.is_other_rank()) return model_.run_rank();
    HEARTH_TRY(read_prompt());
    if (prompt_.empty()) return invalid("the prompt is empty");
    HEARTH_ASSIGN(const auto grammar, grammar_.compile());
    model_.session.max_sequences = std::max(beams_.beams(), decoding_.choices().sequences());
    model_.session.candidate_rows =
        decoding_.choices().candidates(sampling_.choices().top_k.value_or(0));
    HEARTH_ASSIGN(const auto session, model_.open());
    if (session->tokenizer() == nullptr)
      return Error{ErrorKind::kUnsupported,
                   fmt::format("{} has no vocabulary, so it cannot read text; hearth logits takes "
                               "token ids",
                               session->file().name())};
    HEARTH_ASSIGN(GenerationRequest request, make_request(*session));
    request.grammar = grammar;
    if (beams_.searches())
      return beams_.run(*session, request, shows_prompt() ? prompt_ : std::string(), json_);
    const uint32_t prompt_tokens = static_cast<uint32_t>(request.prompt.size());
    HEARTH_ASSIGN(TokenStream stream, session->engine().submit(std::move(request)));
    if (shows_prompt()) show(prompt_);

    nlohmann::json ids = nlohmann::json::array(), probabilities = nlohmann::json::array();
    std::string text;
    std::vector<uint32_t> sampled;
    std::vector<float> sampled_logprobs;
    while (const auto token = stream.next()) {
      ids.push_back(token->id);
      sampled.push_back(token->id);
      sampled_logprobs.push_back(token->logprob);
      if (logprobs_ > 0) probabilities.push_back(to_json(*session, *token));
      text += token->text;
      show(token->text);
    }
    const GenerationEnd& end = stream.end();
    text += end.text;
    show(end.text);
    if (end.reason == FinishReason::kError) return Error{ErrorKind::kInternal, end.message};
    if (!json_) {
      show("\n");
      log_line(speed_line(end));
    }
    if (end.reason == FinishReason::kLength) {
      const bool enough = tokens_ > 0 && end.generated_tokens >= tokens_;
      if (!enough)
        log_line("the text is not complete: the context is full");
      else if (grammar != nullptr)
        log_line(fmt::format("the text is not complete: -n {} cut it off", tokens_));
    }
    std::optional<OutputStats> stats;
    if (stats_) stats = output_stats(sampled, sampled_logprobs);
    const std::optional<Guesses> guesses = guesses_of(*session);
    if (stats) {
      for (const std::string& line : describe(*stats)) log_line(line);
      if (guesses) log_line(guesses_line(*guesses));
    }
    if (!json_) return {};
    const GenerationTimes& times = end.times;
    nlohmann::json result = {{"text", text},
                             {"ids", ids},
                             {"finish_reason", finish_reason_name(end.reason)},
                             {"prompt_tokens", prompt_tokens},
                             {"tokens", end.generated_tokens},
                             {"ttft_seconds", times.first_token},
                             {"tokens_per_s", decode_rate(end)}};
    if (logprobs_ > 0) result["logprobs"] = probabilities;
    if (stats) result["stats"] = stats_json(*stats);
    if (guesses) {
      result["proposed_tokens"] = guesses->proposed;
      result["accepted_tokens"] = guesses->accepted;
      result["tokens_per_step_with_guesses"] = guesses->tokens_per_step();
    }
    if (grammar != nullptr)
      result["forced_tokens"] = session->engine().metrics().forced_tokens.value();
    fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return {};
  }

 private:
  // Checks the words of the command line that are no options, before loading. People who come
  // from Ollama write "hearth run MODEL PROMPT".
  std::string problem_with_words() const {
    if (words_.empty()) return {};
    const std::string& first = words_.front();
    if (model_.model.empty() && is_model(first))
      return fmt::format("{} is a model: write hearth run -m {} {}, or hearth chat -m {}",
                         in_quotes(first), first, words_.size() > 1 ? "\"...\"" : "\"PROMPT\"",
                         first);
    return words_.size() == 1 ? ""
                              : "put the prompt in quotes, and a model after -m: hearth run -m "
                                "MODEL \"PROMPT\"";
  }
  static bool is_model(const std::string& word) {
    if (word.ends_with(".gguf")) return true;
    return std::ranges::any_of(list_models(models_folder()),
                               [&](const LibraryModel& model) { return model.name == word; });
  }

  Status read_prompt() {
    const bool from_input = file_ == "-" || (!words_.empty() && words_.front() == "-");
    if (!from_input && file_.empty()) {
      if (!words_.empty()) prompt_ = words_.front();
      return {};
    }
    HEARTH_ASSIGN(prompt_, from_input ? read_standard_input() : read_text_file(file_));
    // The line break at the end of a file is not part of the prompt.
    if (prompt_.ends_with('\n')) prompt_.pop_back();
    return {};
  }

  // Tokens per second after the first one; 0 if there was only one.
  static double decode_rate(const GenerationEnd& end) {
    const double seconds = end.times.last_token - end.times.first_token;
    return seconds > 0 ? (end.generated_tokens - 1) / seconds : 0.0;
  }
  static std::string speed_line(const GenerationEnd& end) {
    std::string line = "prompt: " + count_of(end.prompt_tokens, "token");
    const double prompt_seconds = end.times.first_token - end.times.admitted;
    if (end.generated_tokens > 0 && prompt_seconds > 0)
      line += fmt::format(" at {:.1f} tokens/s, first token after {:.2f} s",
                          end.prompt_tokens / prompt_seconds, end.times.first_token);
    line += "; generated: " + count_of(end.generated_tokens, "token");
    if (const double rate = decode_rate(end); rate > 0)
      line += fmt::format(" at {:.1f} tokens/s", rate);
    return line;
  }

  Result<GenerationRequest> make_request(const Session& session) {
    GenerationRequest request{.sampling = sampling_.choices().over(session.default_sampling()),
                              .max_tokens = tokens_,
                              .stop = sampling_.stop,
                              .banned_strings = sampling_.ban,
                              .ignore_end = ignore_end_};
    request.sampling.top_logprobs = logprobs_;
    if (beams_.searches()) beams_.apply(request);
    decoding_.choices().apply(*session.tokenizer(), request);
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

  // A text that follows a grammar stands alone, so that other programs can read it.
  bool shows_prompt() const { return !chat_ && !grammar_.given(); }

  void show(const std::string& text) const {
    if (json_) return;
    fmt::print("{}", text);
    std::fflush(stdout);
  }

  static nlohmann::json to_json(const Session& session, const GeneratedToken& token) {
    nlohmann::json top = nlohmann::json::array();
    for (const TopLogprob& entry : token.top)
      top.push_back({{"id", entry.id},
                     {"text", session.tokenizer()->piece(entry.id, true)},
                     {"logprob", entry.logprob}});
    return {{"id", token.id}, {"logprob", token.logprob}, {"top", top}};
  }

  ModelOptionsGroup model_;
  SamplingOptionsGroup sampling_;
  BeamOptionsGroup beams_;
  DecodingOptionsGroup decoding_;
  GrammarOptionsGroup grammar_;
  std::vector<std::string> words_;
  std::string prompt_, file_, system_;
  uint32_t tokens_ = 0, logprobs_ = 0;
  bool chat_ = false, ignore_end_ = false, json_ = false, stats_ = false;
};

RunCommand run_command;

}  // namespace
}  // namespace hearth
