#include "engine/decoding/speculation/length_choice.h"

#include <algorithm>
#include <optional>

namespace hearth {
namespace {

// Speculation has to be this much faster than plain decoding before it is worth its risk: estimates
// are never exact.
constexpr double kLeastGain = 1.03;

// The time of a step that judges `proposed` tokens. Until one was measured, it is guessed from
// plain steps.
std::optional<double> judged_seconds(const StepPrices& prices, std::uint32_t rows) {
  const std::optional<double> waiting = prices.waiting->seconds(rows);
  const std::optional<double> ahead = prices.ahead->seconds(rows);
  if (!waiting) return ahead;
  // The host waits for it, so it is no faster than a plain step of this size that was measured.
  if (prices.ahead->measured(rows) && !prices.waiting->measured(rows))
    return std::max(*waiting, *ahead);
  return waiting;
}

}  // namespace

void LengthChoice::choose(const StepPrices& prices, std::uint32_t members,
                          std::span<const ProposalChance> chances, std::uint32_t most_total,
                          std::vector<std::uint32_t>& lengths) {
  lengths.assign(chances.size(), 0);
  if (!prices.ahead->measured(members)) return;  // first it must be known what plain steps cost
  const double plain = members / *prices.ahead->seconds(members);

  const auto less = [](const Next& a, const Next& b) {
    return a.gain != b.gain ? a.gain < b.gain : a.chance > b.chance;
  };
  heap_.clear();
  order_.clear();
  for (std::uint32_t i = 0; i < chances.size(); ++i)
    if (chances[i].most > 0 && chances[i].acceptance > 0)
      heap_.push_back({chances[i].acceptance, i});
  std::make_heap(heap_.begin(), heap_.end(), less);

  double tokens = members, best = plain * kLeastGain;
  std::uint32_t deepest_draft = 0;
  std::size_t best_count = 0;
  while (!heap_.empty() && order_.size() < most_total) {
    std::pop_heap(heap_.begin(), heap_.end(), less);
    Next& next = heap_.back();
    const ProposalChance& chance = chances[next.chance];
    tokens += next.gain;
    order_.push_back(next.chance);
    const std::uint32_t depth = ++lengths[next.chance];
    if (chance.drafted) deepest_draft = std::max(deepest_draft, depth);
    if (depth < chance.most) {
      next.gain *= chance.acceptance;
      std::push_heap(heap_.begin(), heap_.end(), less);
    } else {
      heap_.pop_back();
    }
    const std::optional<double> seconds =
        judged_seconds(prices, members + static_cast<std::uint32_t>(order_.size()));
    if (!seconds) break;
    const double rate = tokens / (*seconds + deepest_draft * prices.draft_step_seconds);
    if (rate > best) {
      best = rate;
      best_count = order_.size();
    }
  }
  for (std::size_t i = best_count; i < order_.size(); ++i) --lengths[order_[i]];
}

}  // namespace hearth
