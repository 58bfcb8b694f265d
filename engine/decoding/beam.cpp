#include "engine/decoding/beam.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace hearth {
namespace {

// The sum of a beam that is only there to keep their number: worse than every real one.
constexpr double kHopeless = -1e9;
bool is_hopeless(double sum) { return sum <= kHopeless / 2; }

}  // namespace

BeamSearch::BeamSearch(const BeamOptions& options, std::uint32_t max_new_tokens)
    : options_(options), max_new_tokens_(max_new_tokens) {
  assert(options.beams >= 1 && max_new_tokens >= 1);
}

bool BeamSearch::advance(std::span<const Candidate> candidates) {
  const bool last = ++length_ == max_new_tokens_;
  sums_.clear();
  for (const Candidate& candidate : candidates)
    sums_.push_back(running_[candidate.beam].sum + candidate.logprob);
  order_.resize(candidates.size());
  std::iota(order_.begin(), order_.end(), 0u);
  std::ranges::stable_sort(order_, [&](auto a, auto b) { return sums_[a] > sums_[b]; });

  next_.clear();
  for (std::uint32_t rank = 0; rank < order_.size(); ++rank) {
    const Candidate& candidate = candidates[order_[rank]];
    const double sum = sums_[order_[rank]];
    if (!last && !candidate.ends) {
      if (next_.size() < options_.beams)
        next_.push_back({.parent = candidate.beam, .node = add_node(candidate), .sum = sum});
    } else if (rank < options_.beams && !is_hopeless(sum)) {
      // A text that would not have been kept does not count for having ended.
      finish(add_node(candidate), sum);
    }
    if (rank + 1 >= options_.beams && next_.size() == options_.beams) break;
  }
  const bool full = finished_.size() == options_.beams;
  const bool goes_on = !next_.empty() && !is_hopeless(next_.front().sum) &&
                       !(full && options_.early_stopping == EarlyStopping::kOn);
  if (goes_on)
    while (next_.size() < options_.beams) {
      next_.push_back(next_.back());
      next_.back().sum = kHopeless;
    }
  std::swap(running_, next_);
  return goes_on && can_improve();
}

std::uint32_t BeamSearch::add_node(const Candidate& candidate) {
  nodes_.push_back({.before = running_[candidate.beam].node,
                    .token = candidate.token,
                    .logprob = candidate.logprob});
  return nodes() - 1;
}

double BeamSearch::score(double sum, std::uint32_t length) const {
  return sum / std::pow(static_cast<double>(length), static_cast<double>(options_.length_penalty));
}

void BeamSearch::finish(std::uint32_t node, double sum) {
  const Finished text{.node = node, .score = score(sum, length_)};
  const auto place =
      std::ranges::upper_bound(finished_, text.score, std::ranges::greater(), &Finished::score);
  finished_.insert(place, text);
  if (finished_.size() > options_.beams) finished_.pop_back();
}

// Whether an unfinished text may still become better than the worst finished one.
bool BeamSearch::can_improve() const {
  if (finished_.size() < options_.beams) return true;
  const bool may_grow =
      options_.early_stopping == EarlyStopping::kNever && options_.length_penalty > 0;
  return score(running_.front().sum, may_grow ? max_new_tokens_ : length_) > finished_.back().score;
}

}  // namespace hearth
