#include "engine/ranks/link_timing.h"

#include <algorithm>
#include <chrono>

#include "params/attention.h"

namespace hearth {

Result<std::vector<LinkTiming>> time_link(Link& link, const std::vector<uint64_t>& sizes,
                                          uint32_t repetitions) {
  using Clock = std::chrono::steady_clock;
  constexpr uint32_t kWarmUp = 5;
  std::vector<LinkTiming> timings;
  for (const uint64_t bytes : sizes) {
    std::vector<double> trips;
    for (uint32_t i = 0; i < repetitions + kWarmUp; ++i) {
      const Clock::time_point begin = Clock::now();
      HEARTH_TRY(link.send(1, Channel::kRows, Message(bytes)));
      HEARTH_TRY(link.receive(1, Channel::kRows));
      if (i >= kWarmUp)
        trips.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    std::ranges::nth_element(trips, trips.begin() + static_cast<std::ptrdiff_t>(trips.size() / 2));
    timings.push_back({.bytes = bytes, .seconds = trips[trips.size() / 2] / 2});
  }
  for (uint32_t rank = 1; rank < link.ranks(); ++rank)
    HEARTH_TRY(link.send(rank, Channel::kRows, {}));
  return timings;
}

Status echo_link(Link& link) {
  for (;;) {
    HEARTH_ASSIGN(Message message, link.receive(0, Channel::kRows));
    if (message.empty()) return {};
    HEARTH_TRY(link.send(0, Channel::kRows, std::move(message)));
  }
}

double message_seconds(const std::vector<LinkTiming>& timings, double bytes) {
  if (timings.size() == 1) return timings.front().seconds;
  size_t above = 1;
  while (above + 1 < timings.size() && static_cast<double>(timings[above].bytes) < bytes) ++above;
  const LinkTiming &low = timings[above - 1], &high = timings[above];
  const double slope = (high.seconds - low.seconds) /
                       (static_cast<double>(high.bytes) - static_cast<double>(low.bytes));
  return std::max(0.0, low.seconds + slope * (bytes - static_cast<double>(low.bytes)));
}

SplitCost split_cost(const std::vector<LinkTiming>& timings, const SplitSizes& sizes) {
  const auto rows_of = [&](double width) {
    return message_seconds(timings, sizes.rows * width * sizeof(float));
  };
  // In a sum, both ranks send at the same time.
  const double message = rows_of(sizes.width);
  const double merge = rows_of(sizes.heads * (sizes.head_size + params::kAttentionStats));
  return {.pipeline_seconds = message,
          .tensor_seconds = (1 + 2.0 * sizes.layers) * message + rows_of(sizes.vocabulary / 2.0),
          .sequence_seconds = sizes.layers * merge};
}

}  // namespace hearth
