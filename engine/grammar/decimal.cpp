#include "engine/grammar/decimal.h"

#include <algorithm>
#include <array>
#include <map>

namespace hearth::grammar {
namespace {

constexpr std::size_t kMostDigits = 1000;
constexpr std::uint32_t kMostMultipleStates = 200'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string Decimal::text() const {
  std::string result = negative ? "-" : "";
  result += whole;
  if (!fraction.empty()) {
    result += '.';
    result += fraction;
  }
  return result;
}

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal result;
  std::size_t at = 0;
  if (at < text.size() && text[at] == '-') result.negative = true, ++at;
  const std::size_t whole = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at == whole) return std::nullopt;
  std::string digits(text.substr(whole, at - whole));
  long point = static_cast<long>(digits.size());
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = ++at;
    while (at < text.size() && is_digit(text[at])) ++at;
    if (at == fraction) return std::nullopt;
    digits += text.substr(fraction, at - fraction);
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    bool down = false;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) down = text[at++] == '-';
    long exponent = 0;
    const std::size_t begin = at;
    while (at < text.size() && is_digit(text[at]) && exponent < 100'000)
      exponent = exponent * 10 + (text[at++] - '0');
    if (at == begin) return std::nullopt;
    point += down ? -exponent : exponent;
  }
  if (at != text.size()) return std::nullopt;
  const std::size_t leading = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, leading);
  point -= static_cast<long>(leading);
  if (digits.empty()) return Decimal{.negative = false, .whole = "0", .fraction = ""};
  if (digits.size() > kMostDigits || point > static_cast<long>(kMostDigits) ||
      point < -static_cast<long>(kMostDigits))
    return std::nullopt;
  if (point <= 0) digits.insert(0, static_cast<std::size_t>(1 - point), '0'), point = 1;
  if (static_cast<std::size_t>(point) > digits.size())
    digits.append(static_cast<std::size_t>(point) - digits.size(), '0');
  result.whole = digits.substr(0, static_cast<std::size_t>(point));
  result.fraction = digits.substr(static_cast<std::size_t>(point));
  while (!result.fraction.empty() && result.fraction.back() == '0') result.fraction.pop_back();
  return result;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  int order = 0;
  if (a.whole.size() != b.whole.size())
    order = a.whole.size() < b.whole.size() ? -1 : 1;
  else if (const int whole = a.whole.compare(b.whole); whole != 0)
    order = whole;
  else
    order = a.fraction.compare(b.fraction);
  return a.negative ? -order : order;
}

namespace {

// Builds the states of a comparison as they are reached.
class Comparison {
 public:
  Comparison(const Decimal& bound, Relation relation) : bound_(bound), relation_(relation) {}

  DigitAutomaton build() {
    id({Phase::kStart, false, 0, 0});
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      const State from = pending_[i];
      for (int symbol = 0; symbol < DigitAutomaton::kSymbols; ++symbol) {
        State to;
        const bool alive = step(from, symbol, to);
        const std::int32_t target = alive ? id(to) : DigitAutomaton::kDead;
        automaton_.states[i].next[symbol] = target;
      }
      automaton_.states[i].accepts = accepts(from);
    }
    return std::move(automaton_);
  }

 private:
  enum class Phase : int { kStart, kSign, kWhole, kFraction };
  struct State {
    Phase phase = Phase::kStart;
    bool negative = false;
    std::size_t digits = 0;  // of this phase
    int order = 0;           // of the magnitudes, as far as read
    auto operator<=>(const State&) const = default;
  };

  std::int32_t id(const State& state) {
    const auto [at, added] = ids_.emplace(state, static_cast<std::int32_t>(pending_.size()));
    if (added) pending_.push_back(state), automaton_.states.emplace_back();
    return at->second;
  }

  bool step(const State& from, int symbol, State& to) const {
    to = from;
    if (symbol == 10) {
      to = {Phase::kSign, true, 0, 0};
      return from.phase == Phase::kStart;
    }
    if (symbol == 11) {
      to = {Phase::kFraction, from.negative, 0, whole_order(from)};
      return from.phase == Phase::kWhole;
    }
    const int digit = '0' + symbol;
    if (from.phase == Phase::kFraction) {
      const int other = from.digits < bound_.fraction.size() ? bound_.fraction[from.digits] : '0';
      if (to.order == 0) to.order = digit < other ? -1 : digit > other ? 1 : 0;
      to.digits = to.order != 0 ? 0 : std::min(from.digits + 1, bound_.fraction.size());
      return true;
    }
    to.phase = Phase::kWhole;
    to.digits = std::min(from.digits + 1, bound_.whole.size() + 1);
    if (from.digits < bound_.whole.size()) {
      const int other = bound_.whole[from.digits];
      if (to.order == 0) to.order = digit < other ? -1 : digit > other ? 1 : 0;
    } else {
      to.order = 1;
    }
    return true;
  }

  int whole_order(const State& state) const {
    return state.digits < bound_.whole.size() ? -1 : state.order;
  }

  bool accepts(const State& state) const {
    if (state.phase == Phase::kStart || state.phase == Phase::kSign) return false;
    int order = state.phase == Phase::kWhole ? whole_order(state) : state.order;
    const std::size_t read = state.phase == Phase::kWhole ? 0 : state.digits;
    if (order == 0 && read < bound_.fraction.size()) order = -1;
    if (state.negative) {
      if (bound_.negative)
        order = -order;
      else if (!bound_.is_zero() || order != 0)  // -0 equals 0
        order = -1;
    } else if (bound_.negative) {
      order = 1;
    }
    switch (relation_) {
      case Relation::kLess:
        return order < 0;
      case Relation::kLessOrEqual:
        return order <= 0;
      case Relation::kGreater:
        return order > 0;
      case Relation::kGreaterOrEqual:
        return order >= 0;
      case Relation::kEqual:
        return order == 0;
    }
    return false;
  }

  const Decimal& bound_;
  Relation relation_;
  std::map<State, std::int32_t> ids_;
  std::vector<State> pending_;
  DigitAutomaton automaton_;
};

}  // namespace

DigitAutomaton compare_automaton(const Decimal& bound, Relation relation) {
  return Comparison(bound, relation).build();
}

std::optional<DigitAutomaton> multiple_automaton(const Decimal& divisor) {
  // With d digits after the divisor's point, a number is a multiple if it has at most d digits
  // there (but for zeros), and, read without its point, is one of the divisor read without its
  // point.
  const std::string digits = divisor.whole + divisor.fraction;
  if (digits.size() > 9 || divisor.is_zero() || divisor.negative) return std::nullopt;
  const auto modulus = static_cast<std::uint32_t>(std::stoul(digits));
  const auto places = static_cast<std::uint32_t>(divisor.fraction.size());
  if (modulus > kMostMultipleStates / (places + 2)) return std::nullopt;
  // State: phase * modulus + rest; phase 0 is before the point, phase 1 + k has k digits after it.
  DigitAutomaton automaton;
  automaton.states.resize(static_cast<std::size_t>(modulus) * (places + 2));
  for (std::uint32_t phase = 0; phase < places + 2; ++phase) {
    for (std::uint32_t rest = 0; rest < modulus; ++rest) {
      DigitAutomaton::State& state = automaton.states[phase * modulus + rest];
      std::uint64_t padded = rest;
      for (std::uint32_t k = phase == 0 ? 0 : phase - 1; k < places; ++k)
        padded = padded * 10 % modulus;
      state.accepts = padded == 0;
      for (std::uint32_t digit = 0; digit < 10; ++digit) {
        std::int32_t next = DigitAutomaton::kDead;
        if (phase == places + 1) {
          if (digit == 0) next = static_cast<std::int32_t>(phase * modulus + rest);
        } else {
          const auto value =
              static_cast<std::uint32_t>((static_cast<std::uint64_t>(rest) * 10 + digit) % modulus);
          next = static_cast<std::int32_t>((phase == 0 ? 0 : phase + 1) * modulus + value);
        }
        state.next[digit] = next;
      }
      state.next[10] = phase == 0 && rest == 0 ? 0 : DigitAutomaton::kDead;
      state.next[11] =
          phase == 0 ? static_cast<std::int32_t>(modulus + rest) : DigitAutomaton::kDead;
    }
  }
  return automaton;
}

}  // namespace hearth::grammar
