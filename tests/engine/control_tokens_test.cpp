// Grammars that name control tokens, and triggers after reasoning, with a model's own tokenizer.
#include <gtest/gtest.h>

#include "engine/constraint.h"
#include "engine/grammar_vocabulary.h"
#include "engine/text/vocabulary.h"
#include "engine/weights/model_file.h"

namespace hearth::testing {
namespace {

class ControlTokens : public ::testing::Test {
 protected:
  ControlTokens() {
    const auto file = ModelFile::open(HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf");
    tokenizer_ = Tokenizer::create(read_vocabulary(**file).value()).value();
    trie_ = make_token_trie(*tokenizer_);
    const std::vector<VocabularyToken>& tokens = tokenizer_->vocabulary().tokens;
    while (tokens[control_].kind != TokenKind::kControl || tokenizer_->ends_generation(control_))
      ++control_;
  }

  Constraint constraint(const std::string& lark, GrammarTrigger::Options after = {}) const {
    return Constraint({.grammar = grammar::Grammar::compile_lark(lark).value(),
                       .trie = trie_,
                       .tokenizer = tokenizer_.get(),
                       .after = std::move(after)});
  }
  std::vector<TokenId> encoded(std::string_view text) const {
    return tokenizer_->encode(text, {.add_bos = false});
  }
  static bool allows(const Constraint& constraint, TokenId id) {
    return (constraint.mask(0)[id / 32] >> id % 32 & 1) != 0;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<const grammar::TokenTrie> trie_;
  TokenId control_ = 0;
};

TEST_F(ControlTokens, AreForcedLikeText) {
  const Constraint forced =
      constraint("start: \"yes\" <[" + std::to_string(control_) + "]> \"no\" /[0-9]/");
  std::vector<TokenId> expected = encoded("yes");
  expected.push_back(control_);
  for (const TokenId id : encoded("no")) expected.push_back(id);
  EXPECT_EQ(std::vector(forced.forced().begin(), forced.forced().end()), expected);
  EXPECT_FALSE(allows(forced, control_));
}

TEST_F(ControlTokens, AreAllowedOnlyWhereTheyAreNamed) {
  const std::string name = "<[" + std::to_string(control_) + "]>";
  EXPECT_TRUE(allows(constraint("start: /[a-z]*/ " + name), control_));
  EXPECT_FALSE(allows(constraint("start: /[\\s\\S]*/"), control_));
}

TEST_F(ControlTokens, ATriggerInReasoningDoesNotCount) {
  const GrammarTrigger::Options after{
      .text = "<call>", .reasoning_open = "<think>", .reasoning_close = "</think>"};
  const auto is_free_after = [&](const std::string& text, bool begun) {
    GrammarTrigger::Options options = after;
    options.in_reasoning = begun;
    Constraint checked = constraint("start: /[0-9]+/", options);
    checked.take(encoded(text));
    checked.advance();
    EXPECT_FALSE(checked.fault()) << text;
    return allows(checked, encoded("a").back());
  };
  EXPECT_TRUE(is_free_after("<think>not <call> yet", false));
  EXPECT_TRUE(is_free_after("not <call> yet", true));
  EXPECT_TRUE(is_free_after("<think>not <call> yet</think>", false));
  EXPECT_FALSE(is_free_after("<think>not <call> yet</think> <call>", false));
  EXPECT_FALSE(is_free_after("not <call> yet</think><call>", true));
  EXPECT_FALSE(is_free_after("at once <call>", false));
  EXPECT_FALSE(is_free_after("<call>", false));
  EXPECT_TRUE(is_free_after("<thin", false));
  EXPECT_TRUE(is_free_after(" \n<thinker> ", false));
}

}  // namespace
}  // namespace hearth::testing
