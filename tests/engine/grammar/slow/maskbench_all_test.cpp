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

// Random walks through random schemas, until `states` states have been seen; in each one, the mask
// against every token of the vocabulary.
void expect_exact_masks(const std::shared_ptr<const grammar::TokenTrie>& trie,
                        const std::vector<SchemaCase>& cases, int states, int steps) {
  std::mt19937 random(7);
  std::vector<std::uint32_t> mask(trie->mask_words());
  for (int state = 0; state < states;) {
    const SchemaCase& one = cases[random() % cases.size()];
    const auto grammar = grammar::Grammar::compile_json_schema(one.schema);
    if (!grammar.ok()) continue;
    grammar::Matcher matcher(*grammar, trie);
    std::string so_far;
    for (int step = 0; step < steps && !matcher.ended(); ++step, ++state) {
      matcher.mask(mask);
      std::vector<grammar::TokenId> allowed;
      for (grammar::TokenId id = 0; id < trie->vocabulary_size(); ++id) {
        const bool bit = (mask[id / 32] >> (id % 32) & 1) != 0;
        ASSERT_EQ(bit, matcher.allows(id))
            << one.name << ": token " << id << " '" << trie->bytes(id) << "' after " << so_far;
        if (bit) allowed.push_back(id);
      }
      ASSERT_FALSE(allowed.empty()) << one.name << ": a dead end after " << so_far;
      // Short tokens, so that strings end now and then.
      grammar::TokenId next = allowed[random() % allowed.size()];
      for (int i = 0; i < 3; ++i) {
        const grammar::TokenId other = allowed[random() % allowed.size()];
        if (trie->bytes(other).size() < trie->bytes(next).size()) next = other;
      }
      ASSERT_TRUE(matcher.accept(next));
      so_far += trie->bytes(next);
    }
  }
}

TEST(MaskBenchAll, MasksEqualSingleTokensInRandomStates) {
  const auto cases = maskbench_cases();
  const auto tokenizer = published("llama-bpe");
  if (cases.empty() || tokenizer == nullptr)
    GTEST_SKIP() << "no schemas or vocabulary in ../shared";
  expect_exact_masks(make_token_trie(*tokenizer), cases, 300, 15);
}

// The same in many more states with a part of the vocabulary: all single bytes, all tokens of
// punctuation up to four bytes, and some of the rest.
TEST(MaskBenchAll, MasksEqualSingleTokensInManyRandomStates) {
  const auto cases = maskbench_cases();
  const auto tokenizer = published("llama-bpe");
  if (cases.empty() || tokenizer == nullptr)
    GTEST_SKIP() << "no schemas or vocabulary in ../shared";
  const auto whole = make_token_trie(*tokenizer);
  std::vector<std::string> bytes = {""};
  for (grammar::TokenId id = 0; id < whole->vocabulary_size(); ++id) {
    const std::string text(whole->bytes(id));
    const bool punctuation = text.size() <= 4 && text.find_first_of("\"{}[],:\\") != text.npos;
    if (text.size() == 1 || (punctuation && id % 3 == 0) || (!text.empty() && id % 400 == 0))
      bytes.push_back(text);
  }
  expect_exact_masks(grammar::TokenTrie::create(std::move(bytes), {0}), cases, 100'000, 40);
}

}  // namespace
}  // namespace hearth::testing
