// How much a generated text repeats itself, and how surprising the model found its own words. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hearth {

struct OutputStats {
  // Different n-grams of tokens as a share of all, for n = 1, 2, 3: 1 if nothing repeats. Also 1 if
  // the output has no n-grams of that length.
  double distinct[3] = {1, 1, 1};
  // The share of 4-grams that occurred earlier in the output.
  double repetition = 0;
  // The mean of -ln p over the tokens, with p as sampling had it: after biases and penalties,
  // before temperature and filters.
  double surprisal = 0;
};

// `logprobs` has one entry per id.
OutputStats output_stats(std::span<const uint32_t> ids, std::span<const float> logprobs);

// One line per number, for people.
std::vector<std::string> describe(const OutputStats& stats);

}  // namespace hearth
