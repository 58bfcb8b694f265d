// The numbers of a comparison at a point in time, and the difference between the sides in words.
// Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/replay/step_tally.h"
#include "ui/data/comparison.h"

namespace hearth {

// One side, from the start of its run until `now`. Latencies are those of tokens delivered by then.
struct ComparedNumbers {
  std::string label;
  double seconds = 0;  // the interval: up to now, or to the end of this side if that is earlier
  size_t requests = 0, finished = 0;
  bool done = false;            // every request has ended
  uint64_t tokens = 0;          // delivered
  bool delivers_tokens = true;  // one by one; otherwise all of a request's at once
  StepUse use;
  uint32_t max_sequences = 1;
  std::optional<double> ttft_mean, tbt_p99, end_to_end_mean;  // seconds; nothing: no value yet

  double tokens_per_s() const;
  double batch() const;  // sequences per step, weighted by the steps' time
};
// `use` sums the steps of `run` that ended by `now`.
ComparedNumbers numbers_at(const ComparedRun& run, const StepUse& use, double now);

// A line of the table.
struct ComparedLine {
  std::string name;
  std::array<std::string, 2> values;
  std::string difference;  // of the second side against the first; empty: nothing to say
};
using NumbersPair = std::array<ComparedNumbers, 2>;
std::vector<ComparedLine> compared_lines(const NumbersPair& numbers);

// What a teacher would say in two or three sentences: "continuous finished 1.6 times sooner. static
// computed 38 % padding." Empty until both sides are done.
std::vector<std::string> difference_in_words(const NumbersPair& numbers);

}  // namespace hearth
