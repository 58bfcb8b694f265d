#include "engine/grammar/written_grammar.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "engine/grammar/code_points.h"
#include "engine/grammar/regex.h"
#include "engine/grammar/schema_compiler.h"

namespace hearth::grammar {
namespace {

constexpr std::uint32_t kMostCopies = 2000;  // of a repeated part that is not regular
constexpr std::size_t kMostSymbols = 200'000;

// Thrown and caught in this file.
struct GrammarFailure {
  Error error;
};

class WrittenCompiler {
 public:
  explicit WrittenCompiler(const WrittenGrammar& grammar)
      : grammar_(grammar), data_(std::make_shared<GrammarData>()) {
    data_->set_options(grammar.schemas);
  }

  std::shared_ptr<const Grammar> compile() {
    require(grammar_.root);
    for (const auto& [name, term] : grammar_.rules) check_names(name, term);
    find_recursive();
    if (!grammar_.ignored.empty()) {
      if (recursive_.count(grammar_.ignored) != 0)
        throw GrammarFailure{unsupported("%ignore: a terminal that refers to itself")};
      ignored_ = data_->pool.repeat(expression(rule(grammar_.ignored)), 0, kUnbounded);
    }
    data_->root = rule_id(grammar_.root);
    while (!pending_.empty()) {
      const std::string name = pending_.back();
      pending_.pop_back();
      SequenceRule made;
      made.alternatives = alternatives(rule(name), is_terminal(name));
      if (name == grammar_.root && ignored_ != kNothing)
        for (auto& alternative : made.alternatives) alternative.push_back(lexeme(ignored_));
      data_->sequences[rules_[name]] = std::move(made);
    }
    if (data_->pool.exhausted() || data_->pool.gave_up())
      throw GrammarFailure{unsupported("the grammar is too large")};
    remove_empty();
    return std::make_shared<const Grammar>(data_);
  }

 private:
  using Symbols = std::vector<SequenceRule::Symbol>;

  const GrammarTerm& rule(const std::string& name) const { return grammar_.rules.at(name); }
  void require(const std::string& name) const {
    if (grammar_.rules.count(name) == 0)
      throw GrammarFailure{invalid(fmt::format("the grammar has no rule \"{}\"", name))};
  }
  // Lark's terminals are in upper case; nothing is ignored inside of them.
  static bool is_terminal(const std::string& name) {
    const char first =
        name[name.find_first_not_of('_') == name.npos ? 0 : name.find_first_not_of('_')];
    return first >= 'A' && first <= 'Z';
  }

  void check_names(const std::string& name, const GrammarTerm& term) {
    if (term.kind == GrammarTerm::Kind::kName) {
      require(term.text);
      uses_[name].insert(term.text);
    }
    if (is_rule_only(term)) recursive_.insert(name);
    for (const GrammarTerm& part : term.parts) check_names(name, part);
  }

  // Rules that reach themselves, and rules that use those. The others are regular.
  void find_recursive() {
    // A rule is regular once all rules it uses are.
    std::set<std::string> regular;
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [name, term] : grammar_.rules) {
        if (regular.count(name) != 0 || recursive_.count(name) != 0) continue;
        const std::set<std::string>& used = uses_[name];
        if (!std::all_of(used.begin(), used.end(),
                         [&](const std::string& other) { return regular.count(other) != 0; }))
          continue;
        regular.insert(name);
        changed = true;
      }
    }
    for (const auto& [name, term] : grammar_.rules)
      if (regular.count(name) == 0) recursive_.insert(name);
  }

  // What is never part of a larger lexeme.
  static bool is_rule_only(const GrammarTerm& term) {
    return term.kind == GrammarTerm::Kind::kJsonSchema || term.kind == GrammarTerm::Kind::kToken;
  }

  bool is_regular(const GrammarTerm& term) const {
    if (is_rule_only(term)) return false;
    if (term.kind == GrammarTerm::Kind::kName) return recursive_.count(term.text) == 0;
    return std::all_of(term.parts.begin(), term.parts.end(),
                       [&](const GrammarTerm& part) { return is_regular(part); });
  }

  // `spaced`: ignored text may come before each terminal.
  ExprId expression(const GrammarTerm& term, bool spaced = false) {
    ExpressionPool& pool = data_->pool;
    if (pool.exhausted()) throw GrammarFailure{unsupported("the grammar is too large")};
    const auto terminal = [&](ExprId id) {
      return spaced && ignored_ != kNothing ? pool.concat(ignored_, id) : id;
    };
    switch (term.kind) {
      case GrammarTerm::Kind::kText: {
        if (!term.ignores_case) return terminal(pool.literal(term.text));
        ExprId text = kEpsilon;
        const std::u32string characters = to_code_points(term.text);
        for (auto it = characters.rbegin(); it != characters.rend(); ++it)
          text = pool.concat(pool.char_set(CharSet::one(*it).ignoring_case()), text);
        return terminal(text);
      }
      case GrammarTerm::Kind::kClass:
        return terminal(pool.char_set(term.set));
      case GrammarTerm::Kind::kRegex: {
        auto parsed = parse_regex(pool, term.text, RegexMatch::kFull);
        if (!parsed.ok()) throw GrammarFailure{std::move(parsed).error()};
        if (term.ignores_case)
          throw GrammarFailure{unsupported("a regular expression that ignores case")};
        return terminal(*parsed);
      }
      case GrammarTerm::Kind::kName: {
        const bool inner = spaced && !is_terminal(term.text);
        auto& known = expressions_[inner];
        const auto at = known.find(term.text);
        const ExprId id =
            at != known.end() ? at->second : known[term.text] = expression(rule(term.text), inner);
        return inner ? id : terminal(id);
      }
      case GrammarTerm::Kind::kSequence: {
        ExprId result = kEpsilon;
        for (auto it = term.parts.rbegin(); it != term.parts.rend(); ++it)
          result = pool.concat(expression(*it, spaced), result);
        return result;
      }
      case GrammarTerm::Kind::kEither: {
        std::vector<ExprId> parts;
        for (const GrammarTerm& part : term.parts) parts.push_back(expression(part, spaced));
        return pool.either(std::move(parts));
      }
      case GrammarTerm::Kind::kRepeat:
        return pool.repeat(expression(term.parts[0], spaced), term.min, term.max);
      case GrammarTerm::Kind::kJsonSchema:
      case GrammarTerm::Kind::kToken:
        break;
    }
    return kNothing;
  }

  SequenceRule::Symbol token(const std::string& id) {
    const auto [at, added] =
        tokens_.emplace(id, static_cast<LexemeId>(data_->lexemes.size()));
    if (added)
      data_->lexemes.push_back({Lexeme::Kind::kToken, data_->pool.literal("[" + id + "]")});
    return {false, at->second};
  }

  SequenceRule::Symbol lexeme(ExprId expression) {
    const auto [at, added] =
        lexemes_.emplace(expression, static_cast<LexemeId>(data_->lexemes.size()));
    if (added) data_->lexemes.push_back({Lexeme::Kind::kPlain, expression});
    return {false, at->second};
  }

  RuleId rule_id(const std::string& name) {
    const auto [at, added] = rules_.emplace(name, data_->sequences.size());
    if (added) {
      data_->sequences.emplace_back();
      pending_.push_back(name);
    }
    return data_->sequence_rule(at->second);
  }

  // A rule of its own for a part of another.
  SequenceRule::Symbol helper(std::vector<Symbols> made) {
    data_->sequences.push_back({std::move(made)});
    return {true, data_->sequence_rule(data_->sequences.size() - 1)};
  }

  std::vector<Symbols> alternatives(const GrammarTerm& term, bool in_terminal) {
    std::vector<Symbols> result;
    if (term.kind == GrammarTerm::Kind::kEither) {
      for (const GrammarTerm& part : term.parts) result.push_back(sequence(part, in_terminal));
    } else {
      result.push_back(sequence(term, in_terminal));
    }
    return result;
  }

  // Neighbours that are regular become one lexeme.
  Symbols sequence(const GrammarTerm& term, bool in_terminal) {
    Symbols result;
    std::vector<const GrammarTerm*> run;
    const auto flush = [&] {
      if (run.empty()) return;
      ExprId all = kEpsilon;
      for (auto it = run.rbegin(); it != run.rend(); ++it)
        all = data_->pool.concat(expression(**it, !in_terminal), all);
      run.clear();
      if (all != kEpsilon) result.push_back(lexeme(all));
    };
    const std::vector<GrammarTerm> single = {term};
    for (const GrammarTerm& part :
         term.kind == GrammarTerm::Kind::kSequence ? term.parts : single) {
      if (is_regular(part)) {
        run.push_back(&part);
        continue;
      }
      flush();
      result.push_back(symbol(part, in_terminal));
      if ((symbols_ += result.size()) > kMostSymbols)
        throw GrammarFailure{unsupported("the grammar is too large")};
    }
    flush();
    return result;
  }

  SequenceRule::Symbol symbol(const GrammarTerm& term, bool in_terminal) {
    switch (term.kind) {
      case GrammarTerm::Kind::kName:
        return {true, rule_id(term.text)};
      case GrammarTerm::Kind::kJsonSchema:
        return {true, schema_rule(term.text)};
      case GrammarTerm::Kind::kToken:
        return token(term.text);
      case GrammarTerm::Kind::kRepeat: {
        const SequenceRule::Symbol part = symbol_of(term.parts[0], in_terminal);
        if (term.min > kMostCopies || (term.max != kUnbounded && term.max > kMostCopies))
          throw GrammarFailure{unsupported(fmt::format(
              "a repetition of more than {} times of something recursive", kMostCopies))};
        Symbols all(term.min, part);
        if (term.max == kUnbounded) {
          // List: nothing | List part
          const auto list = static_cast<std::size_t>(data_->sequences.size());
          data_->sequences.emplace_back();
          const SequenceRule::Symbol self{true, data_->sequence_rule(list)};
          data_->sequences[list].alternatives = {{}, {self, part}};
          all.push_back(self);
        } else {
          SequenceRule::Symbol rest{};
          for (std::uint32_t i = term.min; i < term.max; ++i)
            rest = i == term.min ? helper({{}, {part}}) : helper({{}, {part, rest}});
          if (term.max > term.min) all.push_back(rest);
        }
        symbols_ += all.size() + (term.max == kUnbounded ? 0 : term.max);
        return helper({std::move(all)});
      }
      default:
        return symbol_of(term, in_terminal);
    }
  }

  SequenceRule::Symbol symbol_of(const GrammarTerm& term, bool in_terminal) {
    if (is_regular(term)) {
      const ExprId id = expression(term, !in_terminal);
      return id == kEpsilon ? helper({{}}) : lexeme(id);
    }
    if (term.kind == GrammarTerm::Kind::kName || term.kind == GrammarTerm::Kind::kRepeat ||
        is_rule_only(term))
      return symbol(term, in_terminal);
    return helper(alternatives(term, in_terminal));
  }

  RuleId schema_rule(const std::string& text) {
    auto parsed = parse_json(text);
    if (!parsed.ok()) throw GrammarFailure{invalid("%json: " + parsed.error().message)};
    try {
      SchemaDocument document(std::move(parsed).value());
      SchemaCompiler compiler(document, *data_);
      return compiler.compile();
    } catch (Refusal& refusal) {
      refusal.error.message = "%json: " + refusal.error.message;
      throw GrammarFailure{std::move(refusal.error)};
    }
  }

  // Alternatives that cannot match anything would lead into dead ends.
  void remove_empty() {
    std::vector<bool> good(data_->sequences.size(), false);
    const auto usable = [&](const SequenceRule::Symbol& symbol) {
      if (!symbol.is_rule) return data_->pool.is_live(data_->lexemes[symbol.id].expression);
      return (symbol.id & 0x80000000u) == 0 || good[symbol.id & 0x7FFFFFFFu];
    };
    const auto works = [&](const Symbols& symbols) {
      return std::all_of(symbols.begin(), symbols.end(), usable);
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < good.size(); ++i) {
        const auto& all = data_->sequences[i].alternatives;
        if (good[i] || std::none_of(all.begin(), all.end(), works)) continue;
        good[i] = changed = true;
      }
    }
    if (!good[data_->root & 0x7FFFFFFFu])
      throw GrammarFailure{invalid("the grammar matches no text at all")};
    for (SequenceRule& sequence : data_->sequences)
      std::erase_if(sequence.alternatives, [&](const Symbols& symbols) { return !works(symbols); });
  }

  const WrittenGrammar& grammar_;
  std::shared_ptr<GrammarData> data_;
  std::map<std::string, std::set<std::string>> uses_;
  std::set<std::string> recursive_;
  std::map<std::string, ExprId> expressions_[2];  // by name; without and with ignored text
  std::map<ExprId, LexemeId> lexemes_;
  std::map<std::string, LexemeId> tokens_;  // by id
  std::map<std::string, std::size_t> rules_;
  std::vector<std::string> pending_;
  ExprId ignored_ = kNothing;
  std::size_t symbols_ = 0;
};

}  // namespace

Result<std::shared_ptr<const Grammar>> compile_written_grammar(const WrittenGrammar& grammar) {
  try {
    return WrittenCompiler(grammar).compile();
  } catch (GrammarFailure& failure) {
    return std::move(failure.error);
  }
}

Result<std::shared_ptr<const Grammar>> Grammar::compile_gbnf(std::string_view text) {
  HEARTH_ASSIGN(const WrittenGrammar grammar, parse_gbnf(text));
  return compile_written_grammar(grammar);
}

Result<std::shared_ptr<const Grammar>> Grammar::compile_lark(std::string_view text,
                                                             const SchemaOptions& schemas) {
  HEARTH_ASSIGN(WrittenGrammar grammar, parse_lark(text));
  grammar.schemas = schemas;
  return compile_written_grammar(grammar);
}

Result<std::shared_ptr<const Grammar>> Grammar::compile_grammar(std::string_view text,
                                                                const SchemaOptions& schemas) {
  return text.find("::=") != text.npos ? compile_gbnf(text) : compile_lark(text, schemas);
}

}  // namespace hearth::grammar
