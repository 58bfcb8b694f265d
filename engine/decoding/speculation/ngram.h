// Prompt lookup: guesses that repeated text continues as it did before. Looks for an earlier place
// in the sequence where the same tokens occurred that the sequence now ends with, and proposes the
// tokens that followed there. Of several such places it takes the one with the most equal tokens,
// and of equally good ones the latest. Needs no second model; works well for summaries, code edits
// and other answers that repeat their prompt.
//
// Costs a table entry per token and, per proposal, at most kMaxCandidates comparisons. Not
// thread-safe. Allocates only when created, if `max_tokens` is never exceeded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/decoding/speculation/proposal.h"

namespace hearth {

class NgramProposer {
 public:
  struct Options {
    std::uint32_t min_match = 2;   // shortest match, in tokens, that is trusted
    std::uint32_t max_match = 32;  // matches are not compared beyond this
  };

  NgramProposer(std::uint32_t max_tokens, const Options& options);

  // Takes in new tokens of the sequence, beginning with its prompt.
  void append(std::span<const std::uint32_t> tokens);
  std::uint32_t size() const { return static_cast<std::uint32_t>(tokens_.size()); }
  std::span<const std::uint32_t> tokens() const { return tokens_; }

  // Whether propose() would find something.
  bool matches() const { return best_match().length > 0; }
  // Appends up to `most` guesses to `proposed`; none if nothing matches.
  // Returns the length of the match that they follow.
  std::uint32_t propose(std::uint32_t most, std::vector<std::uint32_t>& proposed) const;
  // The same for several places that match: a tree of at most `most` tokens that begins with the
  // chain of propose(), `length` tokens long, and has shorter branches for the other places.
  void propose_tree(std::uint32_t length, std::uint32_t most, Proposal& proposal) const;
  // Appends `count` of the sequence's own tokens, whether or not they are likely.
  void repeat(std::uint32_t count, std::vector<std::uint32_t>& proposed) const;

 private:
  static constexpr std::uint32_t kMaxCandidates = 16;
  static constexpr std::uint32_t kNone = 0xffffffff;

  // An earlier place that the last `length` tokens also precede.
  struct Match {
    std::uint32_t place = 0, length = 0;
  };

  std::size_t bucket(std::uint32_t end) const;
  Match best_match() const;
  std::uint32_t match_length(std::uint32_t a, std::uint32_t b) const;

  Options options_;
  std::vector<std::uint32_t> tokens_;
  // Places by the hash of the min_match tokens that end there: the latest one in `heads_`, and for
  // each place the one before it in `previous_`.
  std::vector<std::uint32_t> heads_, previous_;
};

}  // namespace hearth
