// Masks against the definition: a token is allowed if its bytes are, one after the other.
#include <random>

#include <gtest/gtest.h>

#include "engine/grammar/matcher.h"
#include "tests/engine/grammar/vocabulary.h"

namespace hearth::grammar {
namespace {

using testing::byte_vocabulary;

// Follows random allowed tokens and compares every mask on the way with single tokens.
void expect_exact_masks(const std::shared_ptr<const Grammar>& grammar,
                        const std::shared_ptr<const TokenTrie>& trie, int texts, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> mask(trie->mask_words());
  for (int text = 0; text < texts; ++text) {
    Matcher matcher(grammar, trie);
    std::string so_far;
    for (int step = 0; step < 40 && !matcher.ended(); ++step) {
      matcher.mask(mask);
      std::vector<TokenId> allowed;
      for (TokenId id = 0; id < trie->vocabulary_size(); ++id) {
        const bool bit = (mask[id / 32] >> (id % 32) & 1) != 0;
        ASSERT_EQ(bit, matcher.allows(id))
            << "token " << id << " '" << trie->bytes(id) << "' after " << so_far;
        if (bit) allowed.push_back(id);
      }
      ASSERT_FALSE(allowed.empty()) << "a dead end after " << so_far;
      const TokenId next = allowed[random() % allowed.size()];
      ASSERT_TRUE(matcher.accept(next));
      so_far += trie->bytes(next);
    }
  }
}

std::shared_ptr<const Grammar> schema(const char* text) {
  auto compiled = Grammar::compile_json_schema(text);
  EXPECT_TRUE(compiled.ok()) << (compiled.ok() ? "" : compiled.error().message);
  return compiled.ok() ? *compiled : nullptr;
}

TEST(Masks, EqualSingleTokensForRegularExpressions) {
  const auto trie = byte_vocabulary();
  for (const char* const pattern :
       {"[a-z]+@[a-z]+\\.(com|org)", "(ab|a)*c?", "[\\u00e4-\\u00f6]{2,4}x*",
        "-?[0-9]{1,3}(,[0-9]{3})*", "(?!no)[a-z]{2,}"}) {
    const auto compiled = Grammar::compile_regex(pattern);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    expect_exact_masks(*compiled, trie, 10, 1);
  }
}

TEST(Masks, EqualSingleTokensForSchemas) {
  const auto trie = byte_vocabulary();
  for (
      const char* const text : {
          R"({})",
          R"({"type": "object"})",
          R"({"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
               "required": ["n"]})",
          R"({"type": "object", "properties": {"a": {"type": "string", "maxLength": 4, "minLength": 2},
               "ab": {"enum": ["x", "xy", 1, null]}}, "additionalProperties": {"type": "boolean"}})",
          R"({"type": "array", "items": {"type": "number", "minimum": -2.5, "maximum": 130}, "minItems": 1,
               "maxItems": 3})",
          R"({"anyOf": [{"type": "string", "pattern": "^a.c$"}, {"type": "string", "maxLength": 2}]})",
          R"({"type": "object", "patternProperties": {"^x": {"type": "null"}},
               "properties": {"a": {"const": "\u0001\n\""}}, "minProperties": 1})",
          R"({"type": ["string", "null"], "minLength": 1, "maxLength": 30})",
          R"({"type": "string", "format": "date-time"})",
          R"({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"v": {"type": "integer",
               "multipleOf": 7}, "next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}},
               "required": ["v", "next"], "additionalProperties": false}}})",
      }) {
    SCOPED_TRACE(text);
    const auto grammar = schema(text);
    ASSERT_NE(grammar, nullptr);
    expect_exact_masks(grammar, trie, 10, 2);
  }
}

}  // namespace
}  // namespace hearth::grammar
