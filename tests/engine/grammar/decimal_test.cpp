#include "engine/grammar/decimal.h"

#include <cmath>

#include <gtest/gtest.h>

#include "engine/grammar/code_points.h"

namespace hearth::grammar {
namespace {

Decimal number(std::string_view text) {
  const auto parsed = parse_decimal(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed.value_or(Decimal{});
}

bool accepts(const DigitAutomaton& automaton, const std::string& text) {
  std::int32_t state = 0;
  for (const char c : text) {
    const int symbol = c == '-' ? 10 : c == '.' ? 11 : c - '0';
    state = automaton.states[static_cast<std::size_t>(state)].next[symbol];
    if (state == DigitAutomaton::kDead) return false;
  }
  return automaton.states[static_cast<std::size_t>(state)].accepts;
}

TEST(Decimal, ReadsEverySpellingOfANumber) {
  EXPECT_EQ(number("1.50").text(), "1.5");
  EXPECT_EQ(number("-0").text(), "0");
  EXPECT_EQ(number("1e3").text(), "1000");
  EXPECT_EQ(number("-12.5E-3").text(), "-0.0125");
  EXPECT_EQ(number("0.000").text(), "0");
  EXPECT_EQ(number("100e-2").text(), "1");
  for (const char* const wrong : {"", "-", "1.", ".5", "1e", "0x1", "1e99999", "+1"})
    EXPECT_FALSE(parse_decimal(wrong).has_value()) << wrong;
}

TEST(Decimal, Compares) {
  EXPECT_LT(compare(number("-2"), number("-1.5")), 0);
  EXPECT_GT(compare(number("10"), number("9.99")), 0);
  EXPECT_EQ(compare(number("2.50"), number("25e-1")), 0);
}

// Every number with up to three digits before the point and one after it, against every bound.
TEST(Decimal, AutomataAgreeWithArithmetic) {
  for (const char* const text :
       {"0", "7", "-7", "12", "-100", "99.5", "0.5", "-0.5", "105", "3.25"}) {
    const Decimal bound = number(text);
    const double limit = std::stod(text);
    const auto at_least = compare_automaton(bound, Relation::kGreaterOrEqual);
    const auto below = compare_automaton(bound, Relation::kLess);
    const auto equal = compare_automaton(bound, Relation::kEqual);
    for (int tenths = -2000; tenths <= 2000; ++tenths) {
      const double value = tenths / 10.0;
      std::string spelt = tenths < 0 ? "-" : "";
      spelt += std::to_string(std::abs(tenths) / 10);
      if (tenths % 10 != 0) spelt += "." + std::to_string(std::abs(tenths) % 10);
      EXPECT_EQ(accepts(at_least, spelt), value >= limit) << spelt << " >= " << text;
      EXPECT_EQ(accepts(below, spelt), value < limit) << spelt << " < " << text;
      EXPECT_EQ(accepts(equal, spelt), value == limit) << spelt << " == " << text;
    }
  }
}

TEST(Decimal, NegativeZeroIsZero) {
  const auto at_least = compare_automaton(number("0"), Relation::kGreaterOrEqual);
  EXPECT_TRUE(accepts(at_least, "-0"));
  EXPECT_TRUE(accepts(at_least, "-0.0"));
  EXPECT_FALSE(accepts(at_least, "-0.1"));
}

TEST(Decimal, Multiples) {
  const auto sevens = multiple_automaton(number("7"));
  ASSERT_TRUE(sevens.has_value());
  for (int i = 0; i < 200; ++i) EXPECT_EQ(accepts(*sevens, std::to_string(i)), i % 7 == 0) << i;
  EXPECT_TRUE(accepts(*sevens, "-14.0"));
  EXPECT_FALSE(accepts(*sevens, "14.5"));
  const auto cents = multiple_automaton(number("0.05"));
  ASSERT_TRUE(cents.has_value());
  EXPECT_TRUE(accepts(*cents, "1.15"));
  EXPECT_TRUE(accepts(*cents, "1.1"));
  EXPECT_TRUE(accepts(*cents, "3"));
  EXPECT_TRUE(accepts(*cents, "1.1500"));
  EXPECT_FALSE(accepts(*cents, "1.12"));
  EXPECT_FALSE(accepts(*cents, "1.151"));
  EXPECT_FALSE(multiple_automaton(number("123456789123")).has_value());
}

}  // namespace
}  // namespace hearth::grammar
