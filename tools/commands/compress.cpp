// hearth compress: a shorter prompt that says nearly the same to a model.
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/grammar/grammar.h"
#include "engine/prompt_compression.h"
#include "engine/session.h"
#include "engine/text/encode_chat.h"
#include "runtime/log.h"
#include "tools/commands/ask_model.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/commands/model_options.h"
#include "tools/count_of.h"
#include "tools/progress.h"
#include "tools/read_text.h"

namespace hearth {
namespace {

constexpr uint32_t kAnswerTokens = 48;  // of an answer that is generated to compare with

// What a prompt costs and how likely the answer is after it.
struct PromptMeasure {
  double first_token_seconds = 0;
  double answer_logprob = 0;  // mean over the answer's tokens
};

double mean_of(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

class CompressCommand : public Command {
 public:
  CompressCommand()
      : Command(CommandGroup::kRun, "compress",
                "Shorten a prompt, dropping what the model finds least surprising") {}

  void declare(Options& options) override {
    options.example("hearth compress -f report.txt --ratio 0.5 > shorter.txt");
    options.example(
        "hearth compress -m model.gguf -f report.txt --question \"What did it cost?\" --json");
    options.example("hearth compress -m model.gguf -f report.txt --entities invoice.schema.json");
    options.group("Text");
    options.add("-f,--file FILE", &file_, "The text to shorten; - reads standard input")
        .check(check_file_name)
        .required();
    options.add("--question TEXT", &question_,
                "What is to be asked about the text; without it, the text's last paragraph if it "
                "asks or instructs");
    options.group("Compression");
    const Option& kept_share = options.add(
        "--ratio R", &options_.ratio, "Share of the text's tokens to keep, above 0 and at most 1");
    options
        .add("--question-ratio R", &options_.question_ratio,
             "Share of the question's tokens to keep; 1 keeps all of it")
        .advanced();
    options
        .add("--unit WORD", &unit_,
             "What to keep or drop as a whole. Questions, instructions, code and numbers always "
             "stay")
        .one_of({"token", "phrase", "sentence"});
    options.add("--min-tokens N", &options_.min_tokens, "Leave a text with fewer tokens as it is");
    const Option& summarise = options.add(
        "--summarise", &summarise_, "Ask the model for a summary first, through its chat template");
    options
        .add("--entities SCHEMA", &schema_,
             "Keep only what the model extracts from the text as JSON of this schema (a file), and "
             "the question")
        .check(check_file_name)
        .excludes(kept_share)
        .excludes(summarise);
    options.group("Report");
    options.add(
        "--answer TEXT", &answer_,
        "Report how likely this answer is after each prompt; without it, the model's own answer");
    options.add("--chat", &chat_, "Measure the text as a chat message");
    add_json_option(options, &json_);
    model_.declare(options);
    options.check([this]() -> std::string {
      for (const auto& [name, share] :
           {std::pair{"--ratio", options_.ratio}, {"--question-ratio", options_.question_ratio}})
        if (!is_compression_ratio(share)) return fmt::format("{}: {}", name, wrong_ratio(share));
      return {};
    });
  }

  Status run() override {
    options_.unit = *compress_unit(unit_);
    HEARTH_ASSIGN(std::string text, file_ == "-" ? read_standard_input() : read_text_file(file_));
    if (text.find_first_not_of(" \n\t\r") == std::string::npos) return invalid("the text is empty");
    if (!question_.empty()) text.resize(text.find_last_not_of(" \n\t\r") + 1);
    HEARTH_TRY(read_schema());
    model_.session.max_sequences = 4;
    model_.session.scored_rows = kScoredRows;
    HEARTH_ASSIGN(const auto session, model_.open());
    if (session->tokenizer() == nullptr)
      return Error{
          ErrorKind::kUnsupported,
          fmt::format("{} has no vocabulary, so it cannot read text", session->file().name())};
    const std::string whole = with_question(text);
    HEARTH_ASSIGN(const CompressedPrompt prompt, compress(*session, std::move(text)));
    std::string shorter = prompt.texts[0];
    if (prompt.texts.size() > 1) {
      while (shorter.ends_with('\n') || shorter.ends_with(' ')) shorter.pop_back();
      shorter += "\n\n" + prompt.texts[1];
    }
    HEARTH_ASSIGN(const uint32_t before, count_tokens_of(*session, whole));
    HEARTH_ASSIGN(const uint32_t after, count_tokens_of(*session, shorter));
    const bool changed = shorter != whole;

    nlohmann::json result = {{"text", shorter},
                             {"tokens_before", before},
                             {"tokens_after", after},
                             {"generation_seconds", generation_seconds_},
                             {"scoring_seconds", prompt.scoring_seconds}};
    if (summarise_) result["summarised"] = summarised_;
    if (extracted_) result["entities"] = nlohmann::json::parse(*extracted_, nullptr, false);
    if (!json_) fmt::print("{}{}", shorter, shorter.ends_with('\n') ? "" : "\n");
    std::fflush(stdout);
    if (!changed) {
      report(fmt::format("nothing was dropped: {}; --ratio {:g}, --min-tokens {}",
                         count_of(before, "token"), options_.ratio, options_.min_tokens));
    } else {
      report(fmt::format("tokens: {} before, {} after ({:.1f} %)", before, after,
                         100.0 * after / std::max(before, 1u)));
    }
    report_times(prompt.scoring_seconds);
    if (changed) HEARTH_TRY(compare(*session, whole, shorter, result));
    if (json_)
      fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return {};
  }

 private:
  void report(const std::string& line) const {
    if (!json_) log_line(line);
  }
  // Reports only the phases that ran.
  void report_times(double scoring_seconds) const {
    if (generation_seconds_ > 0)
      report(fmt::format("generation took {:.2f} s", generation_seconds_));
    if (scoring_seconds > 0) report(fmt::format("scoring took {:.2f} s", scoring_seconds));
  }

  std::string with_question(const std::string& text) const {
    return question_.empty() ? text : text + "\n\n" + question_;
  }

  Result<std::vector<TokenId>> encode(const Session& session, const std::string& text) const {
    if (!chat_) return session.tokenizer()->encode(text);
    HEARTH_ASSIGN(const ChatTemplate* chat, session.chat_template());
    const ChatMessage message{"user", text};
    return encode_chat(*chat, *session.tokenizer(), std::span(&message, 1));
  }

  Result<uint32_t> count_tokens_of(const Session& session, const std::string& text) const {
    HEARTH_ASSIGN(const std::vector<TokenId> ids, encode(session, text));
    return static_cast<uint32_t>(ids.size());
  }

  Result<CompressedPrompt> compress(Session& session, std::string text) {
    CompressionOptions options = options_;
    std::string question = question_;
    const size_t tokens = session.tokenizer()->encode(text, {.add_bos = false}).size();
    const bool asks = summarise_ || entities_ != nullptr;
    if (asks && tokens < options.min_tokens) {
      report(fmt::format("the text has {}, fewer than --min-tokens {}, so the model does not {} it",
                         count_of(tokens, "token"), options.min_tokens,
                         summarise_ ? "summarise" : "extract anything from"));
    } else if (asks) {
      if (question.empty()) {
        // It is neither summarised nor searched for entities.
        const size_t begin = find_question(text);
        question = text.substr(begin);
        text.resize(begin);
      }
      if (summarise_)
        HEARTH_TRY(summarise(session, text, options.ratio));
      else
        HEARTH_TRY(extract(session, text));
    }
    if (entities_ != nullptr) options.ratio = 1;  // what was extracted is kept as it is
    std::vector<PromptText> texts{
        {std::move(text), question.empty() ? PromptQuestion::kAtEnd : PromptQuestion::kNone}};
    if (!question.empty()) texts.push_back({question, PromptQuestion::kAll});
    Progress progress("reading the text", ProgressOutput::standard_error(json_));
    const auto scored = [&](size_t done, size_t all) { progress.update(done, all); };
    return compress_prompt(session.engine(), *session.tokenizer(), texts, options,
                           {.scored = scored});
  }

  // Replaces the text by a summary of it, and the ratio by the one that the summary still needs.
  // With a ratio of 1, any summary that is shorter than the text will do.
  Status summarise(Session& session, std::string& text, double& ratio) {
    const Tokenizer& tokenizer = *session.tokenizer();
    const size_t tokens = tokenizer.encode(text, {.add_bos = false}).size();
    const double budget = std::max(1.0, ratio * static_cast<double>(tokens));
    HEARTH_ASSIGN(ModelAnswer summary,
                  ask_model(session, {.max_tokens = static_cast<uint32_t>(budget)},
                            fmt::format("Summarise the text below in at most {} words. Keep names, "
                                        "numbers and facts. Reply with the summary only.\n\n{}",
                                        std::max(1, static_cast<int>(budget * 0.7)), text)));
    generation_seconds_ = summary.end.times.finished;
    const size_t left = tokenizer.encode(summary.text, {.add_bos = false}).size();
    if (left == 0 || left >= tokens) {
      report("the model's summary is empty or no shorter than the text, and is not used");
      return {};
    }
    report(fmt::format("the model's summary has {} of {} tokens", left, tokens));
    text = std::move(summary.text);
    summarised_ = true;
    ratio = std::min(1.0, budget / static_cast<double>(left));
    return {};
  }

  // Replaces the text by what the schema asks for.
  Status extract(Session& session, std::string& text) {
    const size_t tokens = session.tokenizer()->encode(text, {.add_bos = false}).size();
    GenerationRequest request{.max_tokens = static_cast<uint32_t>(tokens)};
    request.grammar = entities_;
    HEARTH_ASSIGN(ModelAnswer answer,
                  ask_model(session, std::move(request),
                            fmt::format("Extract from the text below what this JSON schema "
                                        "describes. Reply with JSON only.\n\nSchema:\n{}\n\n"
                                        "Text:\n{}",
                                        schema_text_, text)));
    generation_seconds_ = answer.end.times.finished;
    if (answer.end.reason == FinishReason::kLength)
      return invalid(
          fmt::format("the JSON that the model writes for {} is longer than the text's {}; give "
                      "its strings and arrays maximum lengths, and set \"additionalProperties\" to "
                      "false",
                      schema_, count_of(tokens, "token")));
    report(fmt::format("extracted {} from {}", count_of(answer.end.generated_tokens, "token"),
                       tokens));
    text = std::move(answer.text);
    extracted_ = text;
    return {};
  }

  // Before the model is loaded, which takes longer.
  Status read_schema() {
    if (schema_.empty()) return {};
    HEARTH_ASSIGN(schema_text_, read_text_file(schema_));
    auto compiled = grammar::Grammar::compile_json_schema(schema_text_,
                                                          {.max_whitespace = 0, .generates = true});
    if (!compiled.ok()) return invalid(fmt::format("{}: {}", schema_, compiled.error().message));
    entities_ = *std::move(compiled);
    return {};
  }

  // Seconds from admission to the first token, the faster of two runs: the first one may compile
  // kernels. Every run has a salt of its own, so that none finds its prompt in the cache.
  Result<double> first_token_seconds(Session& session, const std::vector<TokenId>& prompt) {
    double best = 0;
    for (int run = 0; run < 2; ++run) {
      GenerationRequest request{.prompt = prompt, .max_tokens = 1, .cache_salt = ++salt_};
      HEARTH_ASSIGN(TokenStream stream, session.engine().submit(std::move(request)));
      while (stream.next()) {
      }
      const GenerationTimes& times = stream.end().times;
      const double seconds = times.first_token - times.admitted;
      best = run == 0 ? seconds : std::min(best, seconds);
    }
    return best;
  }

  Result<std::vector<TokenId>> generated_answer(Session& session,
                                                const std::vector<TokenId>& prompt) {
    GenerationRequest request{.prompt = prompt, .max_tokens = kAnswerTokens};
    request.sampling.temperature = 0;
    HEARTH_ASSIGN(TokenStream stream, session.engine().submit(std::move(request)));
    std::vector<TokenId> ids;
    while (const auto token = stream.next()) ids.push_back(token->id);
    return ids;
  }

  Result<PromptMeasure> measure(Session& session, const std::vector<TokenId>& prompt,
                                const std::vector<TokenId>& answer) {
    PromptMeasure measured;
    HEARTH_ASSIGN(measured.first_token_seconds, first_token_seconds(session, prompt));
    if (answer.empty()) return measured;
    HEARTH_ASSIGN(const std::vector<float> scores, score_answer(session.engine(), prompt, answer));
    measured.answer_logprob = mean_of(scores);
    return measured;
  }

  // The time to the first token and the answer's likelihood, with either prompt.
  Status compare(Session& session, const std::string& whole, const std::string& shorter,
                 nlohmann::json& result) {
    HEARTH_ASSIGN(const std::vector<TokenId> before, encode(session, whole));
    HEARTH_ASSIGN(const std::vector<TokenId> after, encode(session, shorter));
    std::vector<TokenId> answer;
    if (!answer_.empty()) answer = session.tokenizer()->encode(answer_, {.add_bos = false});
    const uint32_t context = longest_prompt(session);
    const size_t answer_room = answer_.empty() ? kAnswerTokens : answer.size();
    if (before.size() + answer_room + 1 > context) {
      report(
          fmt::format("the whole text does not fit the context of {} tokens, so there is nothing "
                      "to compare with",
                      context));
      return {};
    }
    if (answer_.empty()) {
      HEARTH_ASSIGN(answer, generated_answer(session, before));
    }
    HEARTH_ASSIGN(const PromptMeasure long_one, measure(session, before, answer));
    HEARTH_ASSIGN(const PromptMeasure short_one, measure(session, after, answer));
    report(fmt::format("time to first token: {:.3f} s before, {:.3f} s after (measured)",
                       long_one.first_token_seconds, short_one.first_token_seconds));
    result["ttft_seconds_before"] = long_one.first_token_seconds;
    result["ttft_seconds_after"] = short_one.first_token_seconds;
    if (answer.empty()) {
      report("the model gives no answer, so there is no likelihood to compare");
      return {};
    }
    report(fmt::format(
        "answer of {}, ln p per token: {:.3f} before, {:.3f} after (each token is "
        "{:.2f} times as likely)",
        count_of(answer.size(), "token"), long_one.answer_logprob, short_one.answer_logprob,
        std::exp(short_one.answer_logprob - long_one.answer_logprob)));
    result["answer"] = session.tokenizer()->decode(answer);
    result["answer_logprob_before"] = long_one.answer_logprob;
    result["answer_logprob_after"] = short_one.answer_logprob;
    return {};
  }

  static uint32_t longest_prompt(Session& session) {
    const SchedulerLimits limits = session.engine().limits();
    return std::min(limits.context, limits.pool_blocks * kTokensPerBlock);
  }

  ModelOptionsGroup model_;
  CompressionOptions options_;
  std::string file_, question_, answer_, schema_, schema_text_, unit_ = "phrase";
  std::shared_ptr<const grammar::Grammar> entities_;  // null: no --entities
  std::optional<std::string> extracted_;              // JSON; empty: nothing was
  double generation_seconds_ = 0;  // of the summary or the JSON; 0: neither was generated
  uint64_t salt_ = 0;
  bool summarise_ = false, summarised_ = false, chat_ = false, json_ = false;
};

CompressCommand compress_command;

}  // namespace
}  // namespace hearth
