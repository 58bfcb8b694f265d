// Exact decimal numbers, and automata that compare the decimal text of a number with a bound, digit
// by digit. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/grammar/expression.h"

namespace hearth::grammar {

struct Decimal {
  bool negative = false;  // never for zero
  std::string whole;      // without leading zeros; "0" for numbers below one
  std::string fraction;   // without trailing zeros

  bool is_zero() const { return whole == "0" && fraction.empty(); }
  bool is_integer() const { return fraction.empty(); }
  // The shortest plain form, without an exponent.
  std::string text() const;
  bool operator==(const Decimal&) const = default;
};

// Reads a JSON number. Nothing if it is not one, or has more than a thousand digits.
std::optional<Decimal> parse_decimal(std::string_view text);
// Negative, zero or positive as a < b, a == b, a > b.
int compare(const Decimal& a, const Decimal& b);

enum class Relation { kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kEqual };

// Accepts plain decimals (no exponent) with this relation to the bound. Only meaningful for texts
// with the syntax of a number.
DigitAutomaton compare_automaton(const Decimal& bound, Relation relation);
// Accepts plain decimals that are multiples of `divisor`. Nothing if that needs too many states.
std::optional<DigitAutomaton> multiple_automaton(const Decimal& divisor);

}  // namespace hearth::grammar
