#include "engine/pooling.h"

#include <algorithm>
#include <cassert>

namespace hearth {

PoolingState::PoolingState(Pooling kind, uint32_t prompt_tokens)
    : begin_(kind == Pooling::kLast ? prompt_tokens - 1 : 0), end_(prompt_tokens), taken_(begin_) {}

PoolingState::Tokens PoolingState::take(uint32_t first, uint32_t count) {
  const uint32_t end = std::min(first + count, end_);
  const uint32_t begin = std::max(first, taken_);
  if (begin >= end) return {};
  taken_ = end;
  return {.first = begin, .count = end - begin};
}

void PoolingState::add(std::span<const float> sums, uint32_t ranges) {
  assert(ranges > 0);
  const size_t width = sums.size() / ranges;
  sums_.resize(width);
  for (size_t i = 0; i < sums.size(); ++i) sums_[i % width] += sums[i];
}

std::vector<float> PoolingState::mean() const {
  std::vector<float> mean(sums_.size());
  std::ranges::transform(sums_, mean.begin(),
                         [&](double sum) { return static_cast<float>(sum / (end_ - begin_)); });
  return mean;
}

}  // namespace hearth
