// Keeps what a request generates inside its grammar: which tokens may follow, and which have to.
//
// One per constrained request. It works in rounds. The engine thread tells it with take() what was
// generated; advance() then does the work, on any one thread (mask_workers.h), and until it has
// returned nobody else may use the constraint. After that the engine thread reads the results,
// which are valid until the next take(). A new constraint has results, too: for the first token.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/matcher.h"
#include "engine/grammar_trigger.h"
#include "engine/ids.h"

namespace hearth {

class Tokenizer;

class Constraint {
 public:
  struct Options {
    std::shared_ptr<const grammar::Grammar> grammar;
    std::shared_ptr<const grammar::TokenTrie> trie;  // of the tokenizer
    const Tokenizer* tokenizer = nullptr;
    uint32_t vocabulary = 0;  // of the model, whose logits a mask covers; 0: the tokenizer's
    bool ignore_end = false;  // end tokens are never allowed in the grammar's text
    bool forces = true;       // false: all tokens are sampled, even where only one is possible
    GrammarTrigger::Options after = {};  // the grammar begins after its text; empty: at once
    double most_seconds = 0.5;  // of processor time per round; a grammar that takes more is refused
  };
  explicit Constraint(const Options& options);
  Constraint(const Constraint&) = delete;
  Constraint& operator=(const Constraint&) = delete;

  // The tokens that became final since the last round, and guesses at what follows them. `parents`
  // as in TokenLedger::propose(); empty for a chain.
  void take(std::span<const TokenId> tokens, std::span<const TokenId> guesses = {},
            std::span<const uint32_t> parents = {});
  void advance();
  // Continues from the state of another constraint of the same grammar, as of its last round.
  void fork_from(const Constraint& other);

  // Whether the last round took so long that others should not wait for the next one.
  bool slow() const { return seconds_ > kSlowSeconds; }

  // If the text cannot continue although it is incomplete, the reason.
  const std::optional<std::string>& fault() const { return fault_; }
  // The tokens that have to follow, because only one continuation is possible.
  std::span<const TokenId> forced() const { return forced_; }
  // After the forced tokens the text is complete and cannot continue.
  bool complete() const { return complete_; }
  // The guesses that are left: those that begin with the forced tokens, without these, as far as
  // the grammar allows them.
  std::span<const TokenId> guesses() const { return guesses_; }
  std::span<const uint32_t> parents() const { return parents_; }  // empty: a chain
  // What may follow: row 0 after the forced tokens, row 1 + i after guess i.
  std::span<const uint32_t> mask(uint32_t row) const {
    return std::span(masks_).subspan(size_t{row} * mask_words_, mask_words_);
  }

 private:
  // With published schemas, one mask in a hundred takes 0.4 ms and the slowest 13 ms
  // (docs/measurements.md).
  static constexpr double kSlowSeconds = 5e-3;

  void follow();
  void advance_grammar();
  void advance_before_trigger();
  void follow_forced();
  void follow_guesses();
  template <class State, class Follow>
  void keep_guesses(const State& begin, Follow follow);
  // Adds a row with what may follow in the matcher's state; false if nothing may.
  bool add_mask(grammar::Matcher& matcher);
  void add_mask(const GrammarTrigger& trigger);
  // The tokens of forced bytes, and of the text between control tokens in them.
  std::vector<TokenId> encode(std::string_view bytes) const;
  std::vector<TokenId> encode_text(std::string_view text) const;

  const Tokenizer& tokenizer_;
  const std::shared_ptr<const grammar::TokenTrie> trie_;
  const size_t mask_words_;
  const bool ignore_end_, forces_;
  const double most_seconds_;
  grammar::Matcher matcher_;
  std::optional<GrammarTrigger> trigger_;  // until it is found

  // The round's input.
  std::vector<TokenId> taken_;
  // Its results; guesses_ and parents_ begin as what was guessed.
  std::optional<std::string> fault_;
  std::vector<TokenId> forced_;
  bool complete_ = false;
  std::vector<TokenId> guesses_;
  std::vector<uint32_t> parents_;
  std::vector<uint32_t> masks_;  // [rows, mask_words_]
  double seconds_ = 0;           // of processor time that the last round took

  std::vector<uint32_t> bits_;  // scratch space of add_mask(): a mask of the tokenizer's tokens
};

}  // namespace hearth
