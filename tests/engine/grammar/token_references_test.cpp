// Control tokens in grammars: only where they are named.
#include <gtest/gtest.h>

#include "engine/grammar/matcher.h"
#include "tests/engine/grammar/grammar_texts.h"

namespace hearth::grammar {
namespace {

using testing::compiled;
using testing::refusal;

// Ids 0 to 3 are text, 4, 5 and 45 control tokens, 6 ends the text.
std::shared_ptr<const TokenTrie> trie_with_control_tokens() {
  std::vector<std::string> bytes(46);
  bytes[0] = "a";
  bytes[1] = "ab";
  bytes[2] = "\"";
  bytes[3] = "[4]";
  for (const TokenId id : {4u, 5u, 45u}) bytes[id] = token_reference(id);
  return TokenTrie::create(std::move(bytes), {6});
}

std::vector<TokenId> allowed_by(Matcher& matcher, const TokenTrie& trie) {
  std::vector<std::uint32_t> mask(trie.mask_words());
  matcher.mask(mask);
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < trie.vocabulary_size(); ++id) {
    const bool bit = (mask[id / 32] >> (id % 32) & 1) != 0;
    EXPECT_EQ(bit, matcher.allows(id)) << id;
    if (bit) ids.push_back(id);
  }
  return ids;
}

using Ids = std::vector<TokenId>;

TEST(TokenReferences, ComeWhereTheGrammarNamesThem) {
  const auto trie = trie_with_control_tokens();
  for (const auto& grammar :
       {compiled(Grammar::compile_lark("start: \"a\" <[4]> (<[45]> | \"a\" start)?")),
        compiled(Grammar::compile_gbnf("root ::= \"a\" <[4]> (<[45]> | \"a\" root)?"))}) {
    Matcher matcher(grammar, trie);
    EXPECT_EQ(allowed_by(matcher, *trie), Ids({0}));
    EXPECT_TRUE(matcher.accept(0));
    EXPECT_EQ(allowed_by(matcher, *trie), Ids({4}));
    EXPECT_EQ(matcher.forced(), token_reference(4));
    EXPECT_FALSE(matcher.accept_bytes("[4]"));
    EXPECT_TRUE(matcher.accept(4));
    EXPECT_EQ(allowed_by(matcher, *trie), Ids({0, 6, 45}));
    EXPECT_TRUE(matcher.accept(45));
    EXPECT_EQ(allowed_by(matcher, *trie), Ids({6}));
  }
}

// Vocabularies with tokens for single bytes have one for the mark, too.
TEST(TokenReferences, AreNotSpeltByteByByte) {
  const auto trie = TokenTrie::create({"a", "\xFF", "[5]", "\xFF[", token_reference(4)}, {});
  Matcher matcher(compiled(Grammar::compile_lark("start: \"a\" (<[5]> | <[4]>)")), trie);
  EXPECT_TRUE(matcher.accept(0));
  EXPECT_EQ(allowed_by(matcher, *trie), Ids({4}));
}

TEST(TokenReferences, AreNoText) {
  const auto trie = trie_with_control_tokens();
  for (const auto& grammar : {compiled(Grammar::compile_regex("[\\s\\S]*")),
                              compiled(Grammar::compile_regex("(?!ab)[\\s\\S]*")),
                              compiled(Grammar::compile_lark("start: /[^x]*/ <[5]>"))}) {
    Matcher matcher(grammar, trie);
    EXPECT_FALSE(matcher.allows(4));
    allowed_by(matcher, *trie);
  }
  const auto grammar = compiled(Grammar::compile_json_schema(R"({"type": "string"})"));
  Matcher matcher(grammar, trie);
  EXPECT_TRUE(matcher.accept(2));
  EXPECT_EQ(allowed_by(matcher, *trie), Ids({0, 1, 2, 3}));
}

// Two references that begin alike are not forced halfway.
TEST(TokenReferences, AreForcedWhole) {
  const auto trie = trie_with_control_tokens();
  Matcher matcher(compiled(Grammar::compile_lark("start: \"a\" (<[4]> | <[45]>)")), trie);
  EXPECT_EQ(matcher.forced(), "a");
  EXPECT_TRUE(matcher.accept(0));
  EXPECT_EQ(matcher.forced(), "");
  EXPECT_EQ(allowed_by(matcher, *trie), Ids({4, 45}));
}

TEST(TokenReferences, AreIds) {
  EXPECT_EQ(refusal(Grammar::compile_lark("start: <think>")),
            "grammar, line 1: control tokens are named by their ids, as in <[17]>");
  EXPECT_EQ(refusal(Grammar::compile_lark("start: <[]>")),
            "grammar, line 1: expected a token's id");
  EXPECT_EQ(refusal(Grammar::compile_gbnf("root ::= <[4>")),
            "grammar, line 1: expected a token's id");
}

}  // namespace
}  // namespace hearth::grammar
