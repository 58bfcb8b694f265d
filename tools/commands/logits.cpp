// hearth logits: the scores of every possible next token, for comparing engines.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include <fmt/format.h>

#include "tools/commands/command.h"
#include "tools/commands/model_options.h"
#include "tools/commands/sequence_logits.h"

namespace hearth {
namespace {

class LogitsCommand : public Command {
 public:
  LogitsCommand()
      : Command(CommandGroup::kMeasure, "logits",
                "Print next-token logits, for comparing engines") {}

  void declare(Options& options) override {
    options.example("hearth logits -p \"Once upon a\" --top 5");
    options.example("hearth logits --ids 1,2,3 --json");
    options.group("Input");
    const Option& ids = options.add("--ids LIST", &ids_, "Token ids, such as 1,2,3").separator(',');
    const Option& prompt = options.add("-p,--prompt TEXT", &prompt_, "A text instead of ids");
    options.exactly_one({&ids, &prompt});
    options.group("Output");
    options.add("--all", &all_, "Logits after every token, not only the last");
    options.add("--top N", &top_, "Show the N largest logits; 0 shows all, by id");
    options.add("--json", &json_, "Print one JSON object with all logits");
    model_.declare(options);
  }

  Status run() override {
    HEARTH_ASSIGN(std::unique_ptr<ModelFile> file, model_.open_file());
    if (ids_.empty()) HEARTH_TRY(read_prompt(*file));
    const auto tokens = static_cast<uint32_t>(ids_.size());
    if (tokens == 0) return Error{ErrorKind::kInvalid, "the prompt has no tokens"};

    model_.session = evaluation_options(model_.session, 1, tokens, all_);
    HEARTH_ASSIGN(const auto session, model_.open(std::move(file)));
    nlohmann::json lists = nlohmann::json::array();
    const std::span<const uint32_t> sequence(ids_);
    HEARTH_TRY(run_sequences(*session, std::span(&sequence, 1), all_ ? 0 : tokens - 1,
                             [&](const LogitRows& rows) {
                               for (size_t i = 0; i < rows.places.size(); ++i) {
                                 if (json_)
                                   lists.push_back(rows.row(i));
                                 else
                                   print(*session, rows.places[i].position, rows.row(i));
                               }
                             }));
    if (json_) fmt::print("{}\n", nlohmann::json{{"logits", all_ ? lists : lists[0]}}.dump());
    return {};
  }

 private:
  Status read_prompt(const ModelFile& file) {
    HEARTH_ASSIGN(Vocabulary vocabulary, read_vocabulary(file));
    if (vocabulary.kind == VocabularyKind::kNone)
      return Error{
          ErrorKind::kInvalid,
          fmt::format("{} has no vocabulary, so it cannot read text: give --ids", file.name())};
    HEARTH_ASSIGN(const auto tokenizer, Tokenizer::create(std::move(vocabulary)));
    ids_ = tokenizer->encode(prompt_);
    return {};
  }

  void print(const Session& session, uint32_t position, std::span<const float> logits) const {
    std::vector<uint32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0u);
    if (top_ > 0 && top_ < order.size()) {
      std::ranges::partial_sort(order, order.begin() + top_,
                                [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
      order.resize(top_);
    }
    if (all_) fmt::print("after token {} at position {}:\n", ids_[position], position);
    for (const uint32_t id : order) {
      const std::string text =
          session.tokenizer() == nullptr
              ? std::string()
              : nlohmann::json(session.tokenizer()->piece(id, true))
                    .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      fmt::print("{:>8} {:>12.6f}  {}\n", id, logits[id], text);
    }
  }

  ModelOptionsGroup model_;
  std::vector<uint32_t> ids_;
  std::string prompt_;
  uint32_t top_ = 10;
  bool all_ = false, json_ = false;
};

LogitsCommand logits_command;

}  // namespace
}  // namespace hearth
