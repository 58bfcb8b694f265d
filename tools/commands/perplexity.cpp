// hearth perplexity: how well a model predicts a text, as llama.cpp defines it.
//
// The text is tokenized once and cut into chunks of --ctx tokens; an incomplete last chunk is left
// out. If the model's texts begin with BOS, it replaces the first token of every chunk. Chunks are
// independent of each other. Only predictions in the second half of a chunk count; the first half
// gives them context. The perplexity is exp of the mean negative log-likelihood.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "engine/model/worker_pool.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/commands/model_options.h"
#include "tools/commands/sequence_logits.h"
#include "tools/progress.h"
#include "tools/read_text.h"

namespace hearth {
namespace {

double negative_log_likelihood(std::span<const float> logits, uint32_t id) {
  const float largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return std::log(sum) - (static_cast<double>(logits[id]) - largest);
}

struct Score {
  double sum = 0, squares = 0;
  uint64_t tokens = 0;

  void add(double loss) {
    sum += loss;
    squares += loss * loss;
    ++tokens;
  }
  double mean() const { return sum / static_cast<double>(tokens); }
  double perplexity() const { return std::exp(mean()); }
  // Of the perplexity, on the assumption that losses are independent.
  double standard_error() const {
    if (tokens < 2) return 0;
    const double variance = squares / static_cast<double>(tokens) - mean() * mean();
    return std::sqrt(std::max(0.0, variance) / static_cast<double>(tokens - 1)) * perplexity();
  }
};

class PerplexityCommand : public Command {
 public:
  PerplexityCommand()
      : Command(CommandGroup::kMeasure, "perplexity",
                "Measure how well a model predicts a text, as llama.cpp defines it") {}

  void declare(Options& options) override {
    options.example("hearth perplexity -m model.gguf -f wiki.test.raw --ctx 2048");
    options.group("Text");
    options.add("-f,--file FILE", &file_, "The text to read").required();
    options.add("--chunks N", &most_chunks_, "Stop after N chunks; 0 reads the whole text");
    options.group("Output");
    add_json_option(options, &json_);
    model_.declare(options);
    options.at("--ctx").help(
        "Tokens per chunk; 0 means 512, or the model's context if that is shorter");
    options
        .add("--max-step-tokens N", &model_.session.max_step_tokens,
             "Maximum tokens per step; several short chunks share a step")
        .alias("--step-tokens")
        .range(0, 1u << 20)
        .advanced();
  }

  Status run() override {
    HEARTH_ASSIGN(std::unique_ptr<ModelFile> file, model_.open_file());
    HEARTH_ASSIGN(const ModelPlan plan, plan_model(*file));
    HEARTH_TRY(settle_context(plan.config.context, file->name()));
    HEARTH_ASSIGN(const std::vector<uint32_t> ids, read_ids(*file));
    const size_t chunks = ids.size() / context_;
    if (chunks == 0)
      return Error{
          ErrorKind::kInvalid,
          fmt::format("{} has only {} tokens, less than one chunk of {}: give a smaller --ctx",
                      file_, ids.size(), context_)};
    HEARTH_ASSIGN(const Score score, score_chunks(std::move(file), ids, chunks));
    if (json_)
      fmt::print("{}\n", nlohmann::json{{"perplexity", score.perplexity()},
                                        {"tokens", score.tokens},
                                        {"standard_error", score.standard_error()},
                                        {"context", context_},
                                        {"chunks", chunks_run(chunks)},
                                        {"text_tokens", ids.size()}}
                             .dump());
    else
      fmt::print("perplexity {:.4f} +/- {:.4f}, over {} tokens in {} chunks of {}\n",
                 score.perplexity(), score.standard_error(), score.tokens, chunks_run(chunks),
                 context_);
    return {};
  }

 private:
  size_t chunks_run(size_t chunks) const {
    return most_chunks_ == 0 ? chunks : std::min<size_t>(chunks, most_chunks_);
  }

  Status settle_context(uint32_t longest, const std::string& name) {
    constexpr uint32_t kDefaultContext = 512;
    constexpr uint32_t kShortest = 4;
    context_ =
        model_.session.context == 0 ? std::min(kDefaultContext, longest) : model_.session.context;
    if (context_ < kShortest || context_ > longest)
      return Error{ErrorKind::kInvalid, fmt::format("--ctx {}: {} takes chunks of {} to {} tokens",
                                                    context_, name, kShortest, longest)};
    return {};
  }

  // The text's tokens, with BOS already at the start of each chunk.
  Result<std::vector<uint32_t>> read_ids(const ModelFile& file) const {
    HEARTH_ASSIGN(std::string text, read_text_file(file_));
    // llama.cpp drops the end of the last line, too.
    if (text.ends_with('\n')) text.pop_back();

    HEARTH_ASSIGN(Vocabulary vocabulary, read_vocabulary(file));
    if (vocabulary.kind == VocabularyKind::kNone)
      return Error{ErrorKind::kInvalid,
                   fmt::format("{} has no vocabulary, so it cannot read text", file.name())};
    HEARTH_ASSIGN(const auto tokenizer, Tokenizer::create(std::move(vocabulary)));
    std::vector<uint32_t> ids = tokenizer->encode(text);
    if (const Vocabulary& used = tokenizer->vocabulary(); used.add_bos && used.bos)
      for (size_t first = 0; first < ids.size(); first += context_) ids[first] = *used.bos;
    return ids;
  }

  Result<Score> score_chunks(std::unique_ptr<ModelFile> file, std::span<const uint32_t> ids,
                             size_t chunks) {
    const size_t wanted = chunks_run(chunks);
    const uint32_t step_tokens = model_.session.max_step_tokens != 0
                                     ? model_.session.max_step_tokens
                                     : kEvaluationStepTokens;
    const size_t together = std::clamp<size_t>(step_tokens / context_, 1, wanted);
    model_.session =
        evaluation_options(model_.session, static_cast<uint32_t>(together), context_, true);
    HEARTH_ASSIGN(const auto session, model_.open(std::move(file)));
    WorkerPool workers;
    Progress progress("perplexity", ProgressOutput::standard_error(json_));
    Score score;
    std::vector<double> losses;
    std::vector<std::span<const uint32_t>> sequences;
    for (size_t first = 0; first < wanted; first += sequences.size()) {
      sequences.clear();
      for (size_t chunk = first; chunk < std::min(wanted, first + together); ++chunk)
        sequences.push_back(ids.subspan(chunk * context_, context_));
      HEARTH_TRY(run_sequences(*session, sequences, context_ / 2, [&](const LogitRows& rows) {
        losses.resize(rows.places.size());
        // Nothing follows the last token of a chunk.
        const auto counts = [&](size_t i) { return rows.places[i].position + 1 < context_; };
        workers.run(losses.size(), [&](size_t i) {
          const LogitRows::Place& place = rows.places[i];
          if (counts(i))
            losses[i] =
                negative_log_likelihood(rows.row(i), sequences[place.sequence][place.position + 1]);
        });
        for (size_t i = 0; i < losses.size(); ++i)
          if (counts(i)) score.add(losses[i]);
      }));
      const size_t done = first + sequences.size();
      progress.update(
          done, wanted,
          fmt::format("chunk {} of {}, {:.4f} so far", done, wanted, score.perplexity()));
    }
    return score;
  }

  ModelOptionsGroup model_;
  std::string file_;
  uint32_t context_ = 0, most_chunks_ = 0;
  bool json_ = false;
};

PerplexityCommand perplexity_command;

}  // namespace
}  // namespace hearth
