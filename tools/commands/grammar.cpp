// hearth grammar: what a schema or grammar allows.
#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include <fmt/format.h>

#include "engine/grammar_vocabulary.h"
#include "engine/open_model_file.h"
#include "runtime/host/printable.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/grammar/grammar_check.h"
#include "tools/read_text.h"

namespace hearth {
namespace {

class GrammarCommand : public Command {
 public:
  GrammarCommand()
      : Command(CommandGroup::kFiles, "grammar",
                "Check texts against a JSON schema, a grammar or a regular expression") {}

  void declare(Options& options) override {
    options.example("hearth grammar --check answer.json --json-schema person.json");
    Option& batch =
        options
            .add(
                "--batch FILE", &batch_,
                "Check many schemas: one JSON object per line, with name, schema and tests, a list "
                "of objects with data and valid")
            .check(check_file_name);
    options
        .add("--check FILE", &check_,
             "The text to check; - is standard input. The exit code is 1 if it is not accepted")
        .check(check_file_name)
        .excludes(batch);
    Option& schema = options.add("--json-schema FILE", &schema_, "A JSON schema")
                         .check(check_file_name)
                         .excludes(batch);
    Option& grammar = options.add("--grammar FILE", &grammar_, "A grammar in GBNF or Lark's format")
                          .check(check_file_name)
                          .excludes(batch)
                          .excludes(schema);
    regex_option_ =
        &options.add("--regex PATTERN", &regex_, "A regular expression for the whole text")
             .excludes(batch)
             .excludes(schema)
             .excludes(grammar);
    options.add("--any-order", &options_.any_order,
                "Accept the properties of an object in any order, not only in the schema's");
    options.add("--compact", &compact_, "Allow no white space between the parts of JSON");
    add_model_option(options, &model_);
    add_json_option(options, &json_);
  }

  Status run() override {
    if (batch_.empty() && schema_.empty() && grammar_.empty() && !regex_option_->given())
      return invalid(
          "nothing to check: give --batch FILE, or --check FILE with --json-schema, --grammar or "
          "--regex");
    HEARTH_ASSIGN(const auto model, open_model_file(model_));
    HEARTH_ASSIGN(Vocabulary vocabulary, read_vocabulary(*model));
    if (vocabulary.kind == VocabularyKind::kNone)
      return invalid(fmt::format("{} has no vocabulary, so it has no tokens", model->name()));
    HEARTH_ASSIGN(tokenizer_, Tokenizer::create(std::move(vocabulary)));
    trie_ = make_token_trie(*tokenizer_);
    if (compact_) options_.max_whitespace = 0;
    return batch_.empty() ? check_one() : check_batch();
  }

 private:
  static nlohmann::ordered_json times(const std::vector<double>& us) {
    if (us.empty()) return {{"mean", nullptr}, {"max", nullptr}};
    return {{"mean", std::accumulate(us.begin(), us.end(), 0.0) / static_cast<double>(us.size())},
            {"max", *std::max_element(us.begin(), us.end())}};
  }

  static void print_json(const nlohmann::ordered_json& value) {
    fmt::print("{}\n", value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  Result<std::shared_ptr<const grammar::Grammar>> compile() const {
    if (regex_option_->given()) return grammar::Grammar::compile_regex(regex_);
    HEARTH_ASSIGN(const std::string text, read_text_file(grammar_.empty() ? schema_ : grammar_));
    return grammar_.empty() ? grammar::Grammar::compile_json_schema(text, options_)
                            : grammar::Grammar::compile_grammar(text);
  }

  Status check_one() {
    const auto start = std::chrono::steady_clock::now();
    const auto compiled = compile();
    const std::chrono::duration<double, std::micro> compile_time =
        std::chrono::steady_clock::now() - start;
    nlohmann::ordered_json report = {
        {"accepted", nullptr}, {"refused", nullptr}, {"compile_us", compile_time.count()}};
    if (!compiled.ok()) {
      const Error& error = compiled.error();
      if (!json_ || (error.kind != ErrorKind::kInvalid && error.kind != ErrorKind::kUnsupported))
        return error;
      report["refused"] = error.message;
      print_json(report);
      return error;
    }
    const auto& grammar = *compiled;
    if (check_.empty()) {
      if (json_)
        print_json(report);
      else
        fmt::print("compiled\n");
      return {};
    }
    HEARTH_ASSIGN(std::string text, check_ == "-" ? read_standard_input() : read_text_file(check_));
    if (!schema_.empty()) {
      // White space is limited while generating, but says nothing about an instance.
      auto instance = grammar::parse_json(text);
      if (!instance.ok()) return invalid(fmt::format("{}: {}", check_, instance.error().message));
      text = grammar::to_text(*instance);
    }
    const TextVerdict verdict = check_text(grammar, trie_, *tokenizer_, text);
    if (json_) {
      report["accepted"] = verdict.accepted;
      report["mask_us"] = times(verdict.mask_us);
      report["tokens"] = verdict.tokens;
      report["refused_token"] = nullptr;
      if (!verdict.refused_token.empty()) report["refused_token"] = verdict.refused_token;
      print_json(report);
    }
    if (!verdict.accepted)
      return invalid(fmt::format("{}: not accepted: {}", place_in(text, verdict),
                                 explain_refusal(verdict, text)));
    if (!json_) fmt::print("accepted\n");
    return {};
  }

  // FILE:LINE:COLUMN. Only the file for JSON, which is checked in a form of its own, without white
  // space.
  std::string place_in(std::string_view text, const TextVerdict& verdict) const {
    if (!schema_.empty()) return check_;
    const std::string_view before = text.substr(0, verdict.bytes);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t last = before.rfind('\n');
    return fmt::format("{}:{}:{}", check_, line,
                       last == before.npos ? before.size() + 1 : before.size() - last);
  }

  // One line about a schema that is not judged as its file says.
  static std::string complaint(const SchemaVerdict& verdict) {
    const std::string name = verdict.name.empty() ? "(no name)" : printable(verdict.name);
    if (verdict.refused) return fmt::format("{}: refused: {}", name, printable(*verdict.refused));
    return fmt::format("{}: invalid instances accepted: {}, valid ones not: {}", name,
                       verdict.wrong, verdict.missed);
  }

  Status check_batch() {
    HEARTH_ASSIGN(const std::string lines, read_text_file(batch_));
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    std::size_t number = 0, schemas = 0, right = 0, refused = 0, wrong = 0, missed = 0;
    std::map<std::string, std::size_t> reasons;
    std::vector<std::string> complaints;
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = std::min(lines.find('\n', at), lines.size());
      const std::string_view line(lines.data() + at, end - at);
      at = end + 1;
      ++number;
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      const auto one = parse_schema_case(line);
      if (!one.ok()) return invalid(fmt::format("{}:{}: {}", batch_, number, one.error().message));
      const SchemaVerdict verdict = check_schema(*one, options_, trie_, *tokenizer_);
      ++schemas;
      right += verdict.right;
      wrong += verdict.wrong;
      missed += verdict.missed;
      if (verdict.refused) {
        ++refused;
        ++reasons[verdict.refused->substr(0, verdict.refused->find(" at "))];
      }
      if (!verdict.right) complaints.push_back(complaint(verdict));
      if (!json_) continue;
      nlohmann::ordered_json entry = {{"name", verdict.name}};
      if (verdict.refused) {
        entry["accepted"] = nullptr;
        entry["refused"] = *verdict.refused;
      } else {
        entry["accepted"] = verdict.accepted;
        entry["refused"] = nullptr;
      }
      entry["compile_us"] = verdict.compile_us;
      entry["mask_us"] = times(verdict.mask_us);
      all.push_back(std::move(entry));
    }
    if (json_) {
      print_json({{"schemas", std::move(all)}});
      return {};
    }
    fmt::print(
        "{} schemas: {} with every instance judged as the file says, {} refused\n"
        "{} invalid instances accepted, {} valid ones not\n",
        schemas, right, refused, wrong, missed);
    for (const auto& [reason, count] : reasons)
      fmt::print("refused for {}: {}\n", printable(reason), count);
    constexpr std::size_t kMostComplaints = 20;
    for (std::size_t i = 0; i < std::min(complaints.size(), kMostComplaints); ++i)
      fmt::print("{}\n", complaints[i]);
    if (complaints.size() > kMostComplaints)
      fmt::print("and {} others; --json lists all\n", complaints.size() - kMostComplaints);
    return {};
  }

  std::string batch_, check_, schema_, grammar_, regex_, model_;
  bool compact_ = false, json_ = false;
  const Option* regex_option_ = nullptr;
  grammar::SchemaOptions options_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<const grammar::TokenTrie> trie_;
};

GrammarCommand grammar_command;

}  // namespace
}  // namespace hearth
