#include "engine/metrics.h"

#include <algorithm>
#include <array>

namespace hearth {
namespace {

constexpr std::array kTokenSeconds = {0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05,
                                      0.075, 0.1,    0.15,  0.2,    0.3,  0.5,   1.0,  2.5};
constexpr std::array kRequestSeconds = {0.005, 0.01, 0.025, 0.05, 0.1,  0.25, 0.5,  1.0,
                                        2.5,   5.0,  10.0,  20.0, 40.0, 80.0, 160.0};
constexpr std::array kStepTokens = {1.0,  2.0,   4.0,   8.0,   16.0,   32.0,
                                    64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0};

}  // namespace

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1) {}

void Histogram::add(double value) {
  const size_t bucket = static_cast<size_t>(
      std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin());
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  // There is only one writer, so nothing can be added between load and store.
  sum_.store(sum_.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

Histogram::Snapshot Histogram::snapshot() const {
  Snapshot snapshot{.bounds = bounds_, .sum = sum_.load(std::memory_order_relaxed)};
  for (const std::atomic<uint64_t>& count : counts_) {
    snapshot.counts.push_back(count.load(std::memory_order_relaxed));
    snapshot.count += snapshot.counts.back();
  }
  return snapshot;
}

double Histogram::Snapshot::quantile(double q) const {
  if (count == 0) return 0;
  const double wanted = q * static_cast<double>(count);
  double below = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double inside = static_cast<double>(counts[i]);
    if (below + inside < wanted || inside == 0) {
      below += inside;
      continue;
    }
    const double low = i == 0 ? 0 : bounds[i - 1];
    if (i == bounds.size()) return low;
    return low + (bounds[i] - low) * (wanted - below) / inside;
  }
  return bounds.empty() ? 0 : bounds.back();
}

Metrics::Metrics()
    : time_to_first_token_seconds(kRequestSeconds),
      time_between_tokens_seconds(kTokenSeconds),
      time_per_output_token_seconds(kTokenSeconds),
      end_to_end_seconds(kRequestSeconds),
      queue_seconds(kRequestSeconds),
      tokens_per_step(kStepTokens),
      step_seconds(kTokenSeconds) {}

}  // namespace hearth
