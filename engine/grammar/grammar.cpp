#include "engine/grammar/grammar.h"

#include <fmt/format.h>

#include "engine/grammar/code_points.h"
#include "engine/grammar/regex.h"
#include "engine/grammar/rules.h"
#include "engine/grammar/workspace.h"

namespace hearth::grammar {

Grammar::Grammar(std::shared_ptr<const GrammarData> data) : data_(std::move(data)) {}
Grammar::~Grammar() = default;

std::shared_ptr<Workspace> Grammar::workspace(const std::shared_ptr<const TokenTrie>& trie) const {
  const std::lock_guard lock(mutex_);
  bool usable = workspace_ != nullptr && workspace_->trie == trie;
  if (usable) {
    const std::lock_guard inner(workspace_->mutex);
    usable = !workspace_->automaton.full() && !workspace_->automaton.exhausted();
  }
  if (!usable) workspace_ = std::make_shared<Workspace>(data_, trie);
  return workspace_;
}

namespace {

// A grammar of one lexeme.
Result<std::shared_ptr<const Grammar>> from_expression(ExpressionPool pool, ExprId expression) {
  if (!pool.is_live(expression)) return invalid("the grammar matches no text at all");
  if (pool.exhausted() || pool.gave_up()) return unsupported("the grammar is too complex");
  auto data = std::make_shared<GrammarData>();
  data->pool = std::move(pool);
  data->lexemes.push_back({Lexeme::Kind::kPlain, expression});
  data->sequences.push_back({{{{false, 0}}}});
  data->root = data->sequence_rule(0);
  return std::make_shared<const Grammar>(std::move(data));
}

}  // namespace

Result<std::shared_ptr<const Grammar>> Grammar::compile_regex(std::string_view pattern) {
  ExpressionPool pool;
  auto expression = parse_regex(pool, pattern, RegexMatch::kFull);
  if (!expression.ok()) {
    Error error = std::move(expression).error();
    error.message =
        fmt::format("{}: {}", error.kind == ErrorKind::kUnsupported ? "not supported" : "not valid",
                    error.message);
    return error;
  }
  return from_expression(std::move(pool), *expression);
}

Result<std::shared_ptr<const Grammar>> Grammar::compile_choice(
    std::span<const std::string> choices) {
  if (choices.empty()) return invalid("choice: the list is empty");
  ExpressionPool pool;
  std::vector<std::u32string> texts;
  for (const std::string& choice : choices) texts.push_back(to_code_points(choice));
  const ExprId expression = pool.one_of(std::move(texts));
  return from_expression(std::move(pool), expression);
}

}  // namespace hearth::grammar
