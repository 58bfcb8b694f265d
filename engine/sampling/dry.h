// DRY ("don't repeat yourself") penalties: tokens that would continue a repetition of earlier text.
//
// If the last n tokens have occurred before, the token that followed them then gets a penalty of
// multiplier * base^(n - allowed_length), for the longest such n >= allowed_length. A repetition
// does not reach across a sequence breaker, which is a text: it may be part of a token or be spread
// over several. A token that contains a breaker, or is not text, gets no penalty. For one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "params/sampling.h"

namespace hearth {

struct DryOptions {
  float multiplier = 0.0f, base = 1.75f;
  uint32_t allowed_length = 2;
  uint32_t last_tokens = 0;  // how far back repetitions are looked for; 0: everywhere
  std::vector<std::string> breakers;
  uint32_t most = 256;  // tokens with a penalty: those of the longest repetitions, the last first
};

// The bytes of a token; none if it is not text, which breaks sequences as well.
using TokenText = std::function<std::optional<std::string>(uint32_t token)>;

class DryPenalties {
 public:
  DryPenalties(DryOptions options, TokenText text, std::span<const uint32_t> tokens);

  void append(uint32_t token);
  // Begins again with these tokens.
  void restart(std::span<const uint32_t> tokens);

  // The penalties, to be subtracted, for the token that follows the sequence and then `path`.
  std::vector<params::TokenBias> penalties(std::span<const uint32_t> path = {}) const;

 private:
  // The last `length` tokens of a sequence are also those that end at `position`.
  struct Match {
    uint32_t position = 0, length = 0;
  };
  // The end of a sequence: the tokens so far, or these and a path.
  struct End {
    std::vector<Match> matches;  // by position
    std::string tail;            // its last bytes, in which a breaker may have begun
  };

  void extend(End& end, uint32_t token, std::span<const uint32_t> path) const;
  bool breaks(End& end, uint32_t token) const;
  const std::optional<std::string>& text_of(uint32_t token) const;
  bool has_breaker(uint32_t token) const;

  DryOptions options_;
  TokenText text_;
  size_t longest_breaker_ = 0;
  std::vector<uint32_t> tokens_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> positions_;  // of each token
  End end_;
  mutable std::unordered_map<uint32_t, std::optional<std::string>> texts_;
};

}  // namespace hearth
