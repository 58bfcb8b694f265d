// All of MaskBench's sample with Llama 3's vocabulary, and masks against a check of every token in
// random states.
#include <random>

#include <gtest/gtest.h>

#include "engine/grammar/matcher.h"
#include "engine/grammar_vocabulary.h"
#include "tests/engine/grammar/shared_schemas.h"
#include "tests/engine/text/vocabularies.h"

namespace hearth::testing {
namespace {

TEST(MaskBenchAll, EverySchemaTokenByToken) {
  const auto cases = maskbench_cases();
  const auto tokenizer = published("llama-bpe");
  if (cases.empty() || tokenizer == nullptr)
    GTEST_SKIP() << "no schemas or vocabulary in ../shared";
  const auto trie = make_token_trie(*tokenizer);
  std::size_t right = 0, wrong = 0;
  for (const SchemaCase& one : cases) {
    const SchemaVerdict verdict = check_schema(one, {}, trie, *tokenizer);
    right += verdict.right;
    wrong += verdict.wrong;
    EXPECT_EQ(verdict.wrong, 0u) << one.name;
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_GE(right * 100, cases.size() * 90);
}

// Random walks through random schemas; in each state, the mask against every token of the
// vocabulary.
TEST(MaskBenchAll, MasksEqualSingleTokensInRandomStates) {
  const auto cases = maskbench_cases();
  const auto tokenizer = published("llama-bpe");
  if (cases.empty() || tokenizer == nullptr)
    GTEST_SKIP() << "no schemas or vocabulary in ../shared";
  const auto trie = make_token_trie(*tokenizer);
  std::mt19937 random(7);
  std::vector<std::uint32_t> mask(trie->mask_words());
  for (int walk = 0; walk < 60; ++walk) {
    const auto grammar =
        grammar::Grammar::compile_json_schema(cases[random() % cases.size()].schema);
    if (!grammar.ok()) continue;
    grammar::Matcher matcher(*grammar, trie);
    for (int step = 0; step < 12 && !matcher.ended(); ++step) {
      matcher.mask(mask);
      std::vector<grammar::TokenId> allowed;
      for (grammar::TokenId id = 0; id < trie->vocabulary_size(); ++id) {
        const bool bit = (mask[id / 32] >> (id % 32) & 1) != 0;
        ASSERT_EQ(bit, matcher.allows(id)) << "token " << id << " '" << trie->bytes(id) << "'";
        if (bit) allowed.push_back(id);
      }
      ASSERT_FALSE(allowed.empty());
      ASSERT_TRUE(matcher.accept(allowed[random() % allowed.size()]));
    }
  }
}

}  // namespace
}  // namespace hearth::testing
