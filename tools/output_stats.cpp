#include "tools/output_stats.h"

#include <set>

#include <fmt/format.h>

namespace hearth {
namespace {

double distinct_share(std::span<const uint32_t> ids, size_t n) {
  if (ids.size() < n) return 1;
  std::set<std::vector<uint32_t>> different;
  for (size_t i = 0; i + n <= ids.size(); ++i) {
    const auto gram = ids.subspan(i, n);
    different.emplace(gram.begin(), gram.end());
  }
  return static_cast<double>(different.size()) / static_cast<double>(ids.size() - n + 1);
}

}  // namespace

OutputStats output_stats(std::span<const uint32_t> ids, std::span<const float> logprobs) {
  OutputStats stats;
  for (size_t n = 1; n <= 3; ++n) stats.distinct[n - 1] = distinct_share(ids, n);
  stats.repetition = 1 - distinct_share(ids, 4);
  for (const float logprob : logprobs) stats.surprisal -= logprob;
  if (!logprobs.empty()) stats.surprisal /= static_cast<double>(logprobs.size());
  return stats;
}

std::vector<std::string> describe(const OutputStats& stats) {
  std::vector<std::string> lines;
  for (size_t n = 1; n <= 3; ++n)
    lines.push_back(fmt::format("distinct-{}: {:.3f}", n, stats.distinct[n - 1]));
  lines.push_back(
      fmt::format("repetition rate: {:.3f} (4-grams that occurred before)", stats.repetition));
  lines.push_back(fmt::format("mean surprisal: {:.3f} nats per token", stats.surprisal));
  return lines;
}

}  // namespace hearth
