#include "engine/grammar/token_mask.h"

#include <algorithm>

namespace hearth::grammar {
namespace {

constexpr std::size_t kFewTokens = 1024;
constexpr std::size_t kMostMasks = 512;
constexpr std::size_t kMostLexBytes = 64 << 20;
// Exits are merged into one trie if they are many, and small enough to sort.
constexpr std::size_t kManyExits = 8, kLargestMerge = 20'000;

std::uint64_t hash_of(const ParseState& state) {
  std::uint64_t hash = state.may_end ? 1 : 2;
  for (const Reading& reading : state.readings) {
    for (const std::uint64_t part : {reading.lex, reading.row, reading.characters})
      hash = (hash ^ part) * 0x9E3779B97F4A7C15ull, hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

std::size_t TokenMasks::LexTokens::bytes() const {
  std::size_t sum = sizeof(LexTokens) + few.size() * 4 + many.size() * 4;
  for (const Exit& exit : exits)
    sum += sizeof(Exit) + exit.nodes.size() * 4 + exit.merged.nodes.size() * sizeof(TrieNode);
  return sum;
}

TokenMasks::TokenMasks(std::shared_ptr<const TokenTrie> trie, Automaton& automaton)
    : trie_(std::move(trie)), automaton_(automaton), lexer_(automaton.lexer()) {
  stack_.resize(trie_->longest() + 2);
  lex_stack_.resize(trie_->longest() + 2);
}

void TokenMasks::compute(const ParseState& state, MaskSpan mask) {
  const std::uint64_t hash = hash_of(state);
  const auto known = masks_.find(hash);
  if (known != masks_.end() && known->second.state == state) {
    std::copy(known->second.mask.begin(), known->second.mask.end(), mask.begin());
    return;
  }
  // A state with one open string starts from the string tables instead of from nothing.
  std::fill(mask.begin(), mask.end(), 0);
  for (const Reading& reading : state.readings) add_reading(reading, mask);
  if (state.may_end)
    for (const TokenId id : trie_->end_tokens()) set_bit(mask, id);
  if (masks_.size() >= kMostMasks) masks_.clear();
  masks_[hash] = {state, {mask.begin(), mask.end()}};
}

void TokenMasks::walk(const FlatTrie& trie, std::uint32_t node, const ParseState& state,
                      MaskSpan mask) {
  const auto set_tokens = [&](std::uint32_t at) {
    const std::uint32_t end = trie.tokens_end(at);
    for (std::uint32_t k = trie.nodes[at].tokens; k < end; ++k)
      if (trie.labels.empty() || (trie.labels[k] >= min_label_ && trie.labels[k] <= max_label_))
        set_bit(mask, trie.tokens[k]);
  };
  set_tokens(node);
  if (state.readings.empty()) return;
  const std::uint32_t base = trie.nodes[node].depth, end = trie.nodes[node].end;
  stack_[0] = state;
  for (std::uint32_t i = node + 1; i < end;) {
    const TrieNode& at = trie.nodes[i];
    const std::uint32_t depth = at.depth - base;
    automaton_.step(stack_[depth - 1], at.byte, stack_[depth]);
    if (stack_[depth].dead()) {
      i = at.end;
      continue;
    }
    set_tokens(i);
    i = stack_[depth].readings.empty() ? at.end : i + 1;
  }
}

const TokenMasks::LexTokens& TokenMasks::lex_tokens(LexState state) {
  const auto found = lex_tokens_.find(state);
  if (found != lex_tokens_.end()) return *found->second;
  if (lex_bytes_ > kMostLexBytes) {
    lex_tokens_.clear();
    lex_bytes_ = 0;
  }
  auto made = std::make_unique<LexTokens>(make_lex_tokens(state));
  lex_bytes_ += made->bytes();
  return *(lex_tokens_[state] = std::move(made));
}

TokenMasks::LexTokens TokenMasks::make_lex_tokens(LexState state) {
  LexTokens result;
  const FlatTrie& trie = trie_->trie();
  Lexer::OpenString open;
  if (lexer_.open_string(state, &open)) {
    result.open = true;
    result.open_lexeme = open.lexeme;
    for (const std::u32string& text : open.excluded) {
      const auto quotes = trie_->strings().quotes.find(text);
      if (quotes == trie_->strings().quotes.end()) continue;
      for (const std::uint32_t node : quotes->second) {
        LexState at = state;
        const std::string_view bytes = trie_->bytes(trie.tokens[trie.nodes[node].tokens]);
        for (std::size_t i = 0; i < trie.nodes[node].depth; ++i)
          at = lexer_.next(at, static_cast<std::uint8_t>(bytes[i]));
        const auto accepted = lexer_.accepted(at);
        result.exceptions.push_back({node, {accepted.begin(), accepted.end()}});
      }
    }
    return result;
  }
  const bool counted = lexer_.counted(state);
  std::vector<std::uint32_t> counts(counted ? lex_stack_.size() : 0, 0);
  lex_stack_[0] = state;
  std::unordered_map<std::uint64_t, std::size_t> exits;
  for (std::uint32_t i = 1; i < trie.nodes.size();) {
    const TrieNode& node = trie.nodes[i];
    const LexState from = lex_stack_[node.depth - 1];
    const LexState next = lexer_.next(from, node.byte);
    std::uint32_t characters = 0;
    if (next != kDeadLexState && counted && lexer_.counted(next)) {
      const std::int64_t count = lexer_.count(from, next, counts[node.depth - 1]);
      if (count < 0) {
        i = node.end;
        continue;
      }
      characters = counts[node.depth] = static_cast<std::uint32_t>(count);
    }
    if (next == kDeadLexState) {
      i = node.end;
      continue;
    }
    lex_stack_[node.depth] = next;
    for (const LexemeId lexeme : lexer_.accepted(next)) {
      const auto [at, added] =
          exits.emplace(static_cast<std::uint64_t>(lexeme) << 32 | characters, result.exits.size());
      if (added) result.exits.push_back({lexeme, characters, {}, {}});
      result.exits[at->second].nodes.push_back(i);
    }
    if (lexer_.ended(next)) {
      i = node.end;
      continue;
    }
    const std::uint32_t end = trie.tokens_end(i);
    for (std::uint32_t k = node.tokens; k < end; ++k) result.few.push_back(trie.tokens[k]);
    ++i;
  }
  if (result.few.size() > kFewTokens) {
    result.many.assign(trie_->mask_words(), 0);
    for (const TokenId id : result.few) set_bit(result.many, id);
    result.few = {};
  }
  for (Exit& exit : result.exits) {
    if (exit.nodes.size() < kManyExits) continue;
    std::size_t total = 0;
    for (const std::uint32_t node : exit.nodes)
      total += trie.subtree_tokens_end(node) - trie.nodes[node].tokens;
    if (total > kLargestMerge) continue;
    std::vector<FlatTrie::Entry> entries;
    for (const std::uint32_t node : exit.nodes) {
      const std::uint32_t end = trie.subtree_tokens_end(node);
      for (std::uint32_t k = trie.nodes[node].tokens; k < end; ++k)
        entries.push_back(
            {trie_->bytes(trie.tokens[k]).substr(trie.nodes[node].depth), trie.tokens[k]});
    }
    exit.merged = FlatTrie::make(std::move(entries), false);
    exit.nodes.clear();
  }
  return result;
}

void TokenMasks::add_open_string(const Reading& reading, const LexTokens& tokens, MaskSpan mask) {
  const TokenTrie::StringTables& strings = trie_->strings();
  const bool counted = lexer_.counted(reading.lex);
  std::uint32_t room = kUnbounded, missing = 0;
  if (counted) {
    const std::uint32_t max = lexer_.max_count(reading.lex), min = lexer_.min_count(reading.lex);
    if (max != kUnbounded) room = max - reading.characters;
    missing = min > reading.characters ? min - reading.characters : 0;
  }
  const auto too_long =
      std::partition_point(strings.by_size.begin(), strings.by_size.end(),
                           [&](const auto& one) { return one.characters > room; });
  if (too_long - strings.by_size.begin() > strings.by_size.end() - too_long) {
    for (auto it = too_long; it != strings.by_size.end(); ++it) set_bit(mask, it->token);
  } else {
    // Other readings may have set bits already, so those of long tokens are kept.
    std::vector<TokenId> kept;
    for (auto it = strings.by_size.begin(); it != too_long; ++it)
      if ((mask[it->token / 32] >> (it->token % 32) & 1) != 0) kept.push_back(it->token);
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] |= strings.inside[i];
    for (auto it = strings.by_size.begin(); it != too_long; ++it) clear_bit(mask, it->token);
    for (const TokenId id : kept) set_bit(mask, id);
  }
  const FlatTrie& trie = trie_->trie();
  // Tokens that end the string after an excluded text are judged one by one.
  std::vector<std::pair<TokenId, bool>> before;
  for (const LexTokens::Exception& exception : tokens.exceptions) {
    const std::uint32_t end = trie.subtree_tokens_end(exception.node);
    for (std::uint32_t k = trie.nodes[exception.node].tokens; k < end; ++k) {
      const TokenId id = trie.tokens[k];
      before.emplace_back(id, (mask[id / 32] >> (id % 32) & 1) != 0);
    }
  }
  const auto follow = [&](LexemeId lexeme, const FlatTrie& below, std::uint32_t node) {
    const RowId row = automaton_.after(reading.row, lexeme);
    if (row == kNoRow) return;
    ParseState state;
    automaton_.enter(row, state);
    if (!state.dead()) walk(below, node, state, mask);
  };
  min_label_ = missing;
  max_label_ = room;
  follow(tokens.open_lexeme, strings.closing, 0);
  min_label_ = 0;
  max_label_ = kUnbounded;
  for (const auto& [id, was_set] : before)
    if (!was_set) clear_bit(mask, id);
  for (const LexTokens::Exception& exception : tokens.exceptions)
    for (const LexemeId lexeme : exception.lexemes) follow(lexeme, trie, exception.node);
}

void TokenMasks::add_reading(const Reading& reading, MaskSpan mask) {
  const bool counted = lexer_.counted(reading.lex);
  if (counted && reading.characters > 0 && !lexer_.between_characters(reading.lex)) {
    // In the middle of a character of a counted string: rare, and few tokens fit.
    ParseState state;
    state.readings.push_back(reading);
    const FlatTrie& trie = trie_->trie();
    walk(trie, 0, state, mask);
    return;
  }
  const LexTokens& tokens = lex_tokens(reading.lex);
  if (tokens.open) {
    add_open_string(reading, tokens, mask);
    return;
  }
  for (const TokenId id : tokens.few) set_bit(mask, id);
  for (std::size_t i = 0; i < tokens.many.size(); ++i) mask[i] |= tokens.many[i];
  for (const Exit& exit : tokens.exits) {
    const RowId row = automaton_.after(reading.row, exit.lexeme);
    if (row == kNoRow) continue;
    ParseState state;
    automaton_.enter(row, state);
    if (state.dead()) continue;
    if (!exit.merged.nodes.empty()) walk(exit.merged, 0, state, mask);
    for (const std::uint32_t node : exit.nodes) walk(trie_->trie(), node, state, mask);
  }
}

}  // namespace hearth::grammar
