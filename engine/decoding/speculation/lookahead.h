// Lookahead decoding (Fu et al. 2024): finds n-grams that the model itself would write, by Jacobi
// iterations in the rows of the same steps that verify them. Needs no second model and no
// repetition in the text.
//
// A window of kColumns guesses ahead is kept on kLevels levels: level l of column j is what the
// model wrote in step -l after the tokens before it. A step computes the window as a tree: level 0
// is a chain, and each column continues it upwards. What the model samples after the top of a
// column completes an n-gram, which goes into a pool. N-grams of the pool that begin with the
// newest token are proposed in the same tree. Used by the engine thread only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "engine/decoding/speculation/proposal.h"

namespace hearth {

class Lookahead {
 public:
  static constexpr std::size_t kColumns = 5;  // of the window
  static constexpr std::size_t kLevels = 3;   // n-grams have one token more
  static constexpr std::size_t kGrams = 4;    // per first token, and proposed per step

  // The window starts with tokens of the prompt, which may be anything.
  explicit Lookahead(std::span<const std::uint32_t> prompt);

  // Takes in tokens that became final; their n-grams go into the pool, too.
  void append(std::span<const std::uint32_t> tokens);
  // Adds a tree of at most `most` tokens: what may come next, and the window.
  void propose(std::uint32_t most, Proposal& proposal);
  // What the model sampled after the newest committed token and after each token of the last
  // proposal, of which the last ones may be missing.
  void observe(std::span<const std::uint32_t> sampled);

 private:
  using Gram = std::array<std::uint32_t, kLevels>;  // what followed a token
  struct Grams {
    std::array<Gram, kGrams> grams{};
    std::size_t count = 0, next = 0;  // the next one is overwritten
  };
  static constexpr std::size_t kMaxKeys = 1 << 14;

  void remember(std::uint32_t token, const Gram& gram);
  void propose_grams(std::uint32_t most, Proposal& proposal) const;

  std::array<std::array<std::uint32_t, kColumns>, kLevels> window_{};
  std::array<std::uint32_t, kColumns> top_{};  // where the columns' tops are in the proposal
  std::unordered_map<std::uint32_t, Grams> pool_;
  std::array<std::uint32_t, kLevels + 1> last_{};  // the newest tokens
  std::size_t tokens_ = 0;
};

}  // namespace hearth
