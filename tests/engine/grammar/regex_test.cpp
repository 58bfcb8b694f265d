#include "engine/grammar/regex.h"

#include <gtest/gtest.h>

#include "engine/grammar/code_points.h"

namespace hearth::grammar {
namespace {

struct RegexCase {
  const char* pattern;
  std::vector<const char*> matching, others;
};

TEST(Regex, SearchesAsJsonSchemaDoes) {
  for (const RegexCase& one : std::vector<RegexCase>{
           {"^a+b?$", {"a", "aab"}, {"", "b", "abb", "xa"}},
           {"b", {"b", "abc"}, {"", "ac"}},
           {"^(x|yz){2,3}$", {"xx", "xyzx"}, {"x", "xxxx", "yz"}},
           {"^[^0-9]*$", {"", "abc", "\xc3\xa4"}, {"a1"}},
           {"a|^b$", {"xax", "b"}, {"xb", "bb"}},
           {"^\\d{3}-\\w+\\s?$", {"123-ab_", "123-a "}, {"12-a", "123-"}},
           {"^(?!.*bad)[a-z]+$", {"good", "ba"}, {"bad", "xbady"}},
           {"^(?=.*[0-9]).{3,}$", {"ab1", "1ab"}, {"abc", "a1"}},
           {"^[\\w.-]+$", {"a.b-c"}, {"a b"}},
           {"^\\u00e4\\x41\\u{1F600}$",
            {"\xc3\xa4"
             "A\xf0\x9f\x98\x80"},
            {"A"}},
           {"^a.c$", {"abc"}, {"a\nc", "ac"}},
           {"^(a*)*b$", {"b", "aaab"}, {"a"}},
           {"^$", {""}, {"a"}},
           {"", {"", "anything"}, {}},
           {"^(?:a|(?<name>b))c{0}$", {"a", "b"}, {"ac"}},
           {"^a{,3}$", {"a{,3}"}, {"aa"}},
           {"^[]]*$", {}, {"]"}},
       }) {
    ExpressionPool pool;
    const auto parsed = parse_regex(pool, one.pattern, RegexMatch::kSearch);
    ASSERT_TRUE(parsed.ok()) << one.pattern << ": " << parsed.error().message;
    for (const char* const text : one.matching)
      EXPECT_TRUE(pool.matches(*parsed, to_code_points(text))) << one.pattern << " and " << text;
    for (const char* const text : one.others)
      EXPECT_FALSE(pool.matches(*parsed, to_code_points(text))) << one.pattern << " and " << text;
  }
}

TEST(Regex, FullMatchNeedsTheWholeText) {
  ExpressionPool pool;
  const auto parsed = parse_regex(pool, "a|bc", RegexMatch::kFull);
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(pool.matches(*parsed, U"bc"));
  EXPECT_FALSE(pool.matches(*parsed, U"abc"));
}

TEST(Regex, RefusesByName) {
  ExpressionPool pool;
  for (const auto& [pattern, reason] :
       std::vector<std::pair<const char*, const char*>>{{"(a)\\1", "back reference"},
                                                        {"\\bword", "word boundary"},
                                                        {"(?<=a)b", "lookbehind"},
                                                        {"x(y(?=z))", "lookahead"},
                                                        {"\\p{L}", "\\p"},
                                                        {"a{999999}", "repeats more than"},
                                                        {"(", "unclosed group"},
                                                        {"[a", "unclosed ["},
                                                        {"a**", "two quantifiers"},
                                                        {"[z-a]", "out of order"},
                                                        {"a)", "unmatched )"}}) {
    const auto parsed = parse_regex(pool, pattern, RegexMatch::kSearch);
    ASSERT_FALSE(parsed.ok()) << pattern;
    EXPECT_NE(parsed.error().message.find(reason), std::string::npos)
        << pattern << ": " << parsed.error().message;
  }
}

TEST(Regex, IntersectionAndComplementAreExact) {
  ExpressionPool pool;
  const auto letters = parse_regex(pool, "^[a-z]+$", RegexMatch::kSearch);
  const auto no_x = parse_regex(pool, "x", RegexMatch::kSearch);
  const ExprId both = pool.both(*letters, pool.complement(*no_x));
  EXPECT_TRUE(pool.matches(both, U"abc"));
  EXPECT_FALSE(pool.matches(both, U"axc"));
  EXPECT_FALSE(pool.matches(both, U"a1"));
  EXPECT_TRUE(pool.is_live(both));
  const auto only_x = parse_regex(pool, "^x+$", RegexMatch::kSearch);
  EXPECT_FALSE(pool.is_live(pool.both(*only_x, pool.complement(*no_x))));
}

}  // namespace
}  // namespace hearth::grammar
