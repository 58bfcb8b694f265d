#include "engine/grammar/lexer.h"

#include <algorithm>

#include "engine/grammar/position.h"
#include "engine/grammar/token_trie.h"

namespace hearth::grammar {
namespace {

using position::Kind;

constexpr std::size_t kMostStates = 60'000;  // a kilobyte each
constexpr std::int32_t kNotMade = -1;
// Compiling has found that a lexeme matches something at all; here a short look will do.
constexpr std::size_t kSearch = 2'000;

bool is_space(std::uint8_t byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

int hex_value(std::uint8_t byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return -1;
}

// Control characters without a short escape: the only ones that are written as \u00XX where the
// text is not free, so that keys and fixed values have one spelling.
constexpr CharRange kHexOnly[] = {{0, 7}, {11, 11}, {14, 31}};

std::uint32_t with_flag(std::uint32_t position, std::uint32_t old) {
  return position | (old & position::kCountedBit);
}

}  // namespace

Lexer::Lexer(ExpressionPool pool, std::vector<Lexeme> lexemes, std::uint32_t max_whitespace)
    : pool_(std::move(pool)), lexemes_(std::move(lexemes)), max_whitespace_(max_whitespace) {
  pool_.set_limit(pool_.size() + 1'000'000);
  intern({});  // the dead state
  std::fill(next_.begin(), next_.end(), static_cast<std::int32_t>(kDeadLexState));
}

LexState Lexer::start(std::span<const LexemeId> lexemes) {
  const auto strings = std::count_if(lexemes.begin(), lexemes.end(), [&](LexemeId id) {
    return lexemes_[id].kind == Lexeme::Kind::kJsonString;
  });
  std::vector<Pair> pairs;
  for (const LexemeId id : lexemes) {
    const Lexeme& lexeme = lexemes_[id];
    Pair pair{id, position::make(Kind::kGap), lexeme.expression};
    if (lexeme.kind == Lexeme::Kind::kPlain) pair.position = position::make(Kind::kRaw);
    if (lexeme.kind == Lexeme::Kind::kToken) pair.position = position::make(Kind::kMark);
    std::uint32_t min = 0, max = 0;
    if (lexeme.kind == Lexeme::Kind::kJsonString && strings == 1 && lexeme.expression != kAnyText &&
        pool_.is_any_of_length(lexeme.expression, &min, &max)) {
      pair.rest = kAnyText;
      pair.position |= position::kCountedBit;
    }
    pairs.push_back(pair);
  }
  return intern(std::move(pairs));
}

LexState Lexer::intern(std::vector<Pair> pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  std::uint64_t hash = pairs.size();
  for (const Pair& pair : pairs) {
    for (const std::uint64_t part : {pair.lexeme, pair.position, pair.rest})
      hash = (hash ^ part) * 0x9E3779B97F4A7C15ull, hash ^= hash >> 29;
  }
  const auto [begin, end] = ids_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (states_[it->second].pairs == pairs) return it->second;
  if (states_.size() >= kMostStates) {
    exhausted_ = true;
    return kDeadLexState;
  }
  State state;
  std::uint8_t flags = 0;
  bool ended = true;
  for (const Pair& pair : pairs) {
    const Kind kind = position::kind(pair.position);
    bool accepts = kind == Kind::kDone;
    if (kind == Kind::kRaw) {
      accepts = pool_.nullable(pair.rest);
      ended = ended && pair.rest == kEpsilon;
    } else {
      ended = ended && accepts;
    }
    if (accepts && (state.accepted.empty() || state.accepted.back() != pair.lexeme))
      state.accepted.push_back(pair.lexeme);
    if ((pair.position & position::kCountedBit) != 0) {
      flags |= kCounted;
      pool_.is_any_of_length(lexemes_[pair.lexeme].expression, &state.min, &state.max);
    }
    if (kind == Kind::kText) flags |= kBetween;
    if (kind >= Kind::kText && kind != Kind::kDone) flags |= kInString;
  }
  if (!state.accepted.empty()) flags |= kAccepts;
  if (ended) flags |= kEnded;
  state.pairs = std::move(pairs);
  const auto id = static_cast<LexState>(states_.size());
  states_.push_back(std::move(state));
  flags_.push_back(flags);
  next_.resize(next_.size() + 256, kNotMade);
  ids_.emplace(hash, id);
  return id;
}

LexState Lexer::make_next(LexState state, std::uint8_t byte) {
  std::vector<Pair> pairs;
  for (const Pair& old : states_[state].pairs) {
    Pair pair = old;
    if (step(pair, byte)) pairs.push_back(pair);
  }
  const LexState result =
      pairs.empty() || pool_.exhausted() ? kDeadLexState : intern(std::move(pairs));
  next_[state * 256 + byte] = static_cast<std::int32_t>(result);
  return result;
}

bool Lexer::step(Pair& pair, std::uint8_t byte) {
  const std::uint32_t value = position::value(pair.position);
  switch (position::kind(pair.position)) {
    case Kind::kGap:
      if (is_space(byte)) {
        if (value >= max_whitespace_) return false;
        pair.position = with_flag(position::make(Kind::kGap, value + 1), pair.position);
        return true;
      }
      if (lexemes_[pair.lexeme].kind == Lexeme::Kind::kJsonString) {
        pair.position = with_flag(position::make(Kind::kText), pair.position);
        return byte == '"';
      }
      return step_raw(pair, byte, false);
    case Kind::kRaw:
      return step_raw(pair, byte, false);
    case Kind::kMark:
      pair.position = position::make(Kind::kRaw);
      return byte == static_cast<std::uint8_t>(kTokenMark);
    case Kind::kText:
      if (byte == '"') {
        pair.position = with_flag(position::make(Kind::kDone), pair.position);
        const bool ends = pool_.nullable(pair.rest);
        pair.rest = kEpsilon;
        return ends;
      }
      if (byte == '\\') {
        pair.position = with_flag(position::make(Kind::kEscape), pair.position);
        return is_open(pair.rest) || any_live(pair.rest, 0, 31) ||
               any_live(pair.rest, U'"', U'"') || any_live(pair.rest, U'\\', U'\\');
      }
      if (byte < 0x20) return false;
      return step_raw(pair, byte, true);
    case Kind::kRawUtf8:
    case Kind::kTextUtf8: {
      if ((byte & 0xC0) != 0x80) return false;
      const bool in_string = position::kind(pair.position) == Kind::kTextUtf8;
      const std::uint32_t length = value >> 24, missing = (value >> 22 & 3) - 1;
      const std::uint32_t bits = (value & 0x3FFFFF) << 6 | (byte & 0x3Fu);
      const char32_t first = bits << (6 * missing), last = first | ((1u << (6 * missing)) - 1);
      static constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
      const char32_t low = std::max(first, kSmallest[length]);
      const char32_t high = std::min(last, kLastCodePoint);
      if (low > high || (low >= 0xD800 && high <= 0xDFFF)) return false;
      if (missing == 0) return take_character(pair, bits, in_string);
      if (low == first && high == last && begin_tail(pair, low, high, missing, in_string))
        return true;
      pair.position = with_flag(position::make(in_string ? Kind::kTextUtf8 : Kind::kRawUtf8,
                                               position::utf8(length, missing, bits)),
                                pair.position);
      return any_live(pair.rest, low, high);
    }
    case Kind::kRawTail:
    case Kind::kTextTail: {
      if ((byte & 0xC0) != 0x80) return false;
      const bool in_string = position::kind(pair.position) == Kind::kTextTail;
      const std::uint32_t between = position::make(in_string ? Kind::kText : Kind::kRaw);
      const std::uint32_t inside =
          position::make(in_string ? Kind::kTextTail : Kind::kRawTail, value - 1);
      pair.position = with_flag(value == 1 ? between : inside, pair.position);
      return true;
    }
    case Kind::kEscape:
      return step_escape(pair, byte);
    case Kind::kHighDone:
      pair.position = with_flag(position::make(Kind::kHighEscape, value), pair.position);
      return byte == '\\';
    case Kind::kHighEscape:
      pair.position = with_flag(position::make(Kind::kLowHex, value << 12), pair.position);
      return byte == 'u';
    case Kind::kHex:
    case Kind::kLowHex:
      return step_hex(pair, byte);
    case Kind::kDone:
      return false;
  }
  return false;
}

bool Lexer::is_open(ExprId rest) const { return pool_.excludes_few(rest); }

// If all characters in the range lead to the same place, which of them it is need not be
// remembered: most scripts are one range of a class, and there are thousands of such beginnings.
bool Lexer::begin_tail(Pair& pair, char32_t low, char32_t high, std::uint32_t missing,
                       bool in_string) {
  if (low <= 0xDFFF && high >= 0xD800) return false;
  ExprId target = kAnyText;
  if (pair.rest != kAnyText) {
    const std::vector<Arc>& arcs = pool_.arcs(pair.rest);
    const auto after = std::upper_bound(arcs.begin(), arcs.end(), low,
                                        [](char32_t c, const Arc& arc) { return c < arc.low; });
    if (after == arcs.begin() || std::prev(after)->high < high) return false;
    target = std::prev(after)->target;
    if (!pool_.is_live(target, kSearch)) return false;
  }
  pair.rest = target;
  pair.position = with_flag(position::make(in_string ? Kind::kTextTail : Kind::kRawTail, missing),
                            pair.position);
  return true;
}

// Whether some character in the range can be next.
bool Lexer::any_live(ExprId rest, char32_t low, char32_t high) {
  if (rest == kAnyText) return true;
  std::vector<ExprId> targets;
  for (const Arc& arc : pool_.arcs(rest)) {
    if (arc.low > high) break;
    if (arc.high >= low && (arc.low < 0xD800 || arc.high > 0xDFFF)) targets.push_back(arc.target);
  }
  return std::any_of(targets.begin(), targets.end(),
                     [&](ExprId id) { return pool_.is_live(id, kSearch); });
}

bool Lexer::take_character(Pair& pair, char32_t c, bool in_string) {
  pair.position = with_flag(position::make(in_string ? Kind::kText : Kind::kRaw), pair.position);
  if (pair.rest == kAnyText) return true;
  pair.rest = pool_.derivative(pair.rest, c);
  return pool_.is_live(pair.rest, kSearch);
}

bool Lexer::step_raw(Pair& pair, std::uint8_t byte, bool in_string) {
  if (byte < 0x80) return take_character(pair, byte, in_string);
  if (byte < 0xC2 || byte > 0xF4) return false;
  const std::uint32_t length = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
  const std::uint32_t bits = byte & (0x7Fu >> length), missing = length - 1;
  static constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const char32_t first = bits << (6 * missing), last = first | ((1u << (6 * missing)) - 1);
  const char32_t low = std::max(first, kSmallest[length]), high = std::min(last, kLastCodePoint);
  if (low == first && high == last && begin_tail(pair, low, high, missing, in_string)) return true;
  pair.position = with_flag(position::make(in_string ? Kind::kTextUtf8 : Kind::kRawUtf8,
                                           position::utf8(length, missing, bits)),
                            pair.position);
  return any_live(pair.rest, low, high);
}

bool Lexer::step_escape(Pair& pair, std::uint8_t byte) {
  switch (byte) {
    case '"':
    case '\\':
      return take_character(pair, byte, true);
    case '/':
      return is_open(pair.rest) && take_character(pair, U'/', true);
    case 'b':
      return take_character(pair, 8, true);
    case 'f':
      return take_character(pair, 12, true);
    case 'n':
      return take_character(pair, 10, true);
    case 'r':
      return take_character(pair, 13, true);
    case 't':
      return take_character(pair, 9, true);
    case 'u':
      break;
    default:
      return false;
  }
  pair.position = with_flag(position::make(Kind::kHex), pair.position);
  if (is_open(pair.rest)) return true;
  return std::any_of(std::begin(kHexOnly), std::end(kHexOnly), [&](const CharRange& range) {
    return any_live(pair.rest, range.low, range.high);
  });
}

bool Lexer::step_hex(Pair& pair, std::uint8_t byte) {
  const int digit = hex_value(byte);
  if (digit < 0) return false;
  const std::uint32_t value = position::value(pair.position);
  if (position::kind(pair.position) == Kind::kLowHex) {
    const std::uint32_t digits = (value >> 22) + 1, high = value >> 12 & 0x3FF;
    const std::uint32_t number = (value & 0xFFF) << 4 | static_cast<std::uint32_t>(digit);
    if (digits == 1 && number != 0xD) return false;
    if (digits == 2 && (number & 0xF) < 0xC) return false;
    if (digits == 4) return take_character(pair, 0x10000 + (high << 10) + (number & 0x3FF), true);
    pair.position = with_flag(
        position::make(Kind::kLowHex, digits << 22 | high << 12 | (number & 0xFFF)), pair.position);
    return true;
  }
  const std::uint32_t digits = (value >> 16) + 1;
  const std::uint32_t number = (value & 0xFFFF) << 4 | static_cast<std::uint32_t>(digit);
  const std::uint32_t open_bits = 4 * (4 - digits);
  const char32_t low = number << open_bits, high = low | ((1u << open_bits) - 1);
  if (!is_open(pair.rest)) {
    const bool possible =
        std::any_of(std::begin(kHexOnly), std::end(kHexOnly), [&](const CharRange& range) {
          const char32_t first = std::max(range.low, low), last = std::min(range.high, high);
          return first <= last && any_live(pair.rest, first, last);
        });
    if (!possible) return false;
  }
  if (low >= 0xDC00 && high <= 0xDFFF) return false;
  if (digits < 4) {
    pair.position = with_flag(position::make(Kind::kHex, digits << 16 | number), pair.position);
    return true;
  }
  if (low >= 0xD800 && low < 0xDC00) {
    pair.position = with_flag(position::make(Kind::kHighDone, low - 0xD800), pair.position);
    return true;
  }
  return take_character(pair, low, true);
}

std::int64_t Lexer::count(LexState from, LexState to, std::uint32_t characters) const {
  if ((flags_[from] & kInString) == 0) return 0;
  if (accepts(to)) {
    if (characters < states_[to].min) return -1;
    return characters;
  }
  if (characters >= states_[to].max) return -1;
  return between_characters(to) ? characters + 1 : characters;
}

bool Lexer::open_string(LexState state, OpenString* open) const {
  if (!between_characters(state) || accepts(state)) return false;
  bool found = false;
  for (const Pair& pair : states_[state].pairs) {
    if (position::kind(pair.position) != Kind::kText) return false;
    std::vector<std::u32string> excluded;
    if (found || !pool_.excludes_few(pair.rest, &excluded)) continue;
    found = true;
    open->lexeme = pair.lexeme;
    open->excluded = std::move(excluded);
  }
  if (!found) return false;
  // Other lexemes may only end at the texts that this one leaves out.
  for (const Pair& pair : states_[state].pairs) {
    if (pair.lexeme == open->lexeme) continue;
    std::u32string rest;
    ExprId at = pair.rest;
    bool listed = false;
    if (!pool_.only_text(at, &rest)) return false;
    for (const auto& text : open->excluded) listed = listed || text == rest;
    if (!listed) return false;
  }
  return true;
}

int Lexer::only_byte(LexState state) {
  if (states_[state].only_byte != -2) return states_[state].only_byte;
  int found = -1;
  for (int byte = 0; byte < 256; ++byte) {
    if (next(state, static_cast<std::uint8_t>(byte)) == kDeadLexState) continue;
    if (found >= 0) {
      found = -1;
      break;
    }
    found = byte;
  }
  states_[state].only_byte = found;
  return found;
}

}  // namespace hearth::grammar
