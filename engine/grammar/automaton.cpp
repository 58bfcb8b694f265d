#include "engine/grammar/automaton.h"

#include <algorithm>
#include <set>

namespace hearth::grammar {
namespace {

constexpr std::size_t kMostRows = 400'000;
constexpr std::size_t kMostItems = 20'000;
constexpr std::size_t kMostReadings = 2'000;

}  // namespace

Automaton::Automaton(std::shared_ptr<const GrammarData> grammar)
    : grammar_(std::move(grammar)),
      states_(*grammar_),
      lexer_(grammar_->pool, grammar_->lexemes, grammar_->max_whitespace) {
  const RowId first = make_row({{states_.start(grammar_->root), kThisRow}});
  if (first != kNoRow) {
    enter(first, start_);
    start_.may_end = rows_[first].accepts;
  }
}

// Predicts and completes until nothing new comes up. The rows of `kernel`'s origins exist already.
RowId Automaton::make_row(std::vector<Item> kernel) {
  const auto here = static_cast<RowId>(rows_.size());
  Row row;
  std::set<Item> seen;
  std::vector<Item> items;
  std::set<RuleId> ended_here;  // rules that began here and matched nothing
  const auto add = [&](const Item& item) {
    if (seen.insert(item).second) items.push_back(item);
  };
  for (const Item& item : kernel) add(item);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items.size() > kMostItems) {
      exhausted_ = true;
      return kNoRow;
    }
    const Item item = items[i];
    const RuleExpansion& expansion = states_.expansion(item.state);
    if (!expansion.edges.empty() && item.origin != kThisRow) row.key.push_back(item);
    for (const RuleEdge& edge : expansion.edges) {
      const Item to{edge.next, item.origin};
      if (!edge.is_rule) {
        row.scans.push_back({edge.symbol, to});
        if (lexer_.can_be_empty(edge.symbol)) add(to);
        continue;
      }
      row.calls.push_back({edge.symbol, to});
      add({states_.start(edge.symbol), kThisRow});
      if (ended_here.count(edge.symbol) != 0) add(to);
    }
    if (!expansion.accepts) continue;
    const RuleId rule = expansion.rule;
    if (item.origin == kThisRow) {
      if (rule == grammar_->root && here == 0) row.accepts = true;
      if (!ended_here.insert(rule).second) continue;
      for (std::size_t k = 0; k < row.calls.size(); ++k)
        if (row.calls[k].symbol == rule) add(row.calls[k].to);
      continue;
    }
    if (rule == grammar_->root && item.origin == 0) row.accepts = true;
    const std::vector<Move>& calls = rows_[item.origin].calls;
    auto call = std::lower_bound(calls.begin(), calls.end(), rule,
                                 [](const Move& m, RuleId id) { return m.symbol < id; });
    for (; call != calls.end() && call->symbol == rule; ++call)
      add({call->to.state, call->to.origin == kThisRow ? item.origin : call->to.origin});
  }
  std::sort(row.key.begin(), row.key.end());
  std::uint64_t hash = row.accepts ? 1 : 2;
  for (const Item& item : row.key) {
    hash = (hash ^ item.state) * 0x9E3779B97F4A7C15ull;
    hash = (hash ^ item.origin ^ hash >> 29) * 0xBF58476D1CE4E5B9ull;
    hash ^= hash >> 31;
  }
  const auto [begin, end] = ids_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Row& known = rows_[it->second];
    if (it->second != 0 && known.accepts == row.accepts && known.key == row.key) return it->second;
  }
  if (rows_.size() >= kMostRows) {
    exhausted_ = true;
    return kNoRow;
  }
  const auto by_symbol = [](const Move& a, const Move& b) { return a.symbol < b.symbol; };
  std::sort(row.scans.begin(), row.scans.end(), by_symbol);
  std::sort(row.calls.begin(), row.calls.end(), by_symbol);
  std::vector<LexemeId> lexemes;
  for (const Move& scan : row.scans)
    if (lexemes.empty() || lexemes.back() != scan.symbol) lexemes.push_back(scan.symbol);
  row.lex = lexemes.empty() ? kDeadLexState : lexer_.start(lexemes);
  rows_.push_back(std::move(row));
  ids_.emplace(hash, here);
  return here;
}

RowId Automaton::after(RowId row, LexemeId lexeme) {
  const std::uint64_t key = static_cast<std::uint64_t>(row) << 32 | lexeme;
  const auto [at, added] = after_.emplace(key, kNoRow);
  if (!added) return at->second;
  const std::vector<Move>& scans = rows_[row].scans;
  auto scan = std::lower_bound(scans.begin(), scans.end(), lexeme,
                               [](const Move& m, LexemeId id) { return m.symbol < id; });
  std::vector<Item> kernel;
  for (; scan != scans.end() && scan->symbol == lexeme; ++scan)
    kernel.push_back({scan->to.state, scan->to.origin == kThisRow ? row : scan->to.origin});
  if (kernel.empty()) return kNoRow;
  const RowId result = make_row(std::move(kernel));
  after_[key] = result;
  return result;
}

void Automaton::enter(RowId row, ParseState& state) const {
  const Row& entered = rows_[row];
  state.may_end = state.may_end || entered.accepts;
  if (entered.lex == kDeadLexState) return;
  const Reading reading{entered.lex, row, 0};
  if (std::find(state.readings.begin(), state.readings.end(), reading) == state.readings.end())
    state.readings.push_back(reading);
}

void Automaton::step(const ParseState& from, std::uint8_t byte, ParseState& to) {
  to.readings.clear();
  to.may_end = false;
  for (const Reading& reading : from.readings) {
    const LexState next = lexer_.next(reading.lex, byte);
    if (next == kDeadLexState) continue;
    std::uint32_t characters = 0;
    if (lexer_.counted(next)) {
      const std::int64_t count = lexer_.count(reading.lex, next, reading.characters);
      if (count < 0) continue;
      characters = static_cast<std::uint32_t>(count);
    }
    if (lexer_.accepts(next)) {
      const std::size_t accepted = lexer_.accepted(next).size();
      for (std::size_t i = 0; i < accepted; ++i) {
        const RowId row = after(reading.row, lexer_.accepted(next)[i]);
        if (row != kNoRow) enter(row, to);
      }
    }
    if (!lexer_.ended(next)) {
      const Reading same{next, reading.row, characters};
      if (std::find(to.readings.begin(), to.readings.end(), same) == to.readings.end())
        to.readings.push_back(same);
    }
  }
  if (to.readings.size() > kMostReadings) {
    exhausted_ = true;
    to.readings.clear();
    to.may_end = false;
  }
}

int Automaton::only_byte(const ParseState& state) {
  if (state.may_end || state.readings.empty()) return -1;
  int found = -1;
  ParseState next;
  if (state.readings.size() == 1) {
    const int byte = lexer_.only_byte(state.readings[0].lex);
    if (byte < 0 && !lexer_.counted(state.readings[0].lex)) return -1;
  }
  for (int byte = 0; byte < 256; ++byte) {
    step(state, static_cast<std::uint8_t>(byte), next);
    if (next.dead()) continue;
    if (found >= 0) return -1;
    found = byte;
  }
  return found;
}

}  // namespace hearth::grammar
