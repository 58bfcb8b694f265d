#include "engine/ranks/link_timing.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/ranks/message.h"
#include "params/attention.h"

namespace hearth {

namespace {

// Rank 0 to another rank: exchange messages with this one. Without sizes, return what comes from
// it; otherwise send messages, and tell rank 0 how long they took. An empty message ends the
// series.
struct PairTask {
  uint32_t peer = 0, repetitions = 0;
  std::vector<uint64_t> sizes;
};

Message write_pair_task(const PairTask& task) {
  return MessageWriter().value(task.peer).value(task.repetitions).list(task.sizes).take();
}

// Sends to `peer` until done; its part is echo().
Result<std::vector<LinkTiming>> time_pair(Link& link, const PairTask& task) {
  using Clock = std::chrono::steady_clock;
  constexpr uint32_t kWarmUp = 5;
  std::vector<LinkTiming> timings;
  for (const uint64_t bytes : task.sizes) {
    std::vector<double> trips;
    for (uint32_t i = 0; i < task.repetitions + kWarmUp; ++i) {
      const Clock::time_point begin = Clock::now();
      HEARTH_TRY(link.send(task.peer, Channel::kRows, Message(bytes)));
      HEARTH_TRY(link.receive(task.peer, Channel::kRows));
      if (i >= kWarmUp)
        trips.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    std::ranges::nth_element(trips, trips.begin() + static_cast<std::ptrdiff_t>(trips.size() / 2));
    timings.push_back({.bytes = bytes,
                       .seconds = trips[trips.size() / 2] / 2,
                       .ranks = {link.rank(), task.peer}});
  }
  HEARTH_TRY(link.send(task.peer, Channel::kRows, {}));
  return timings;
}

// Returns every message of `peer` until it is done.
Status echo(Link& link, uint32_t peer) {
  for (;;) {
    HEARTH_ASSIGN(Message message, link.receive(peer, Channel::kRows));
    if (message.empty()) return {};
    HEARTH_TRY(link.send(peer, Channel::kRows, std::move(message)));
  }
}

// Rank 0's part: lets two ranks time messages, of which it may be the first.
Result<std::vector<LinkTiming>> time_between(Link& link, uint32_t first, uint32_t second,
                                             const PairTask& task) {
  HEARTH_TRY(link.send(second, Channel::kCommands, write_pair_task({.peer = first})));
  if (first == link.rank()) return time_pair(link, task);
  HEARTH_TRY(link.send(first, Channel::kCommands, write_pair_task(task)));
  HEARTH_ASSIGN(const Message answer, link.receive(first, Channel::kCommands));
  std::vector<LinkTiming> timings;
  MessageReader reader(answer);
  HEARTH_TRY(reader.list(timings).status());
  if (timings.size() == task.sizes.size()) return timings;
  return Error{ErrorKind::kInternal, "a rank timed other messages than it was told to"};
}

}  // namespace

Result<std::vector<LinkTiming>> time_links(Link& link, const std::vector<uint64_t>& sizes,
                                           uint32_t repetitions) {
  std::vector<LinkTiming> slowest(sizes.size());
  for (uint32_t first = 0; first < link.ranks(); ++first)
    for (uint32_t second = first + 1; second < link.ranks(); ++second) {
      HEARTH_ASSIGN(const std::vector<LinkTiming> timings,
                    time_between(link, first, second,
                                 {.peer = second, .repetitions = repetitions, .sizes = sizes}));
      for (size_t i = 0; i < sizes.size(); ++i)
        if (timings[i].seconds > slowest[i].seconds) slowest[i] = timings[i];
    }
  for (uint32_t rank = 1; rank < link.ranks(); ++rank)
    HEARTH_TRY(link.send(rank, Channel::kCommands, {}));
  return slowest;
}

Status help_time_links(Link& link) {
  for (;;) {
    HEARTH_ASSIGN(const Message message, link.receive(0, Channel::kCommands));
    if (message.empty()) return {};
    PairTask task;
    MessageReader reader(message);
    HEARTH_TRY(reader.value(task.peer).value(task.repetitions).list(task.sizes).status());
    if (task.sizes.empty()) {
      HEARTH_TRY(echo(link, task.peer));
      continue;
    }
    HEARTH_ASSIGN(const std::vector<LinkTiming> timings, time_pair(link, task));
    HEARTH_TRY(link.send(0, Channel::kCommands, MessageWriter().list(timings).take()));
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
