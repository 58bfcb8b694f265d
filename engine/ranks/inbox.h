// The messages that have arrived for one rank, by source and channel. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/ranks/link.h"
#include "engine/ranks/close_wait.h"

namespace hearth {

class Inbox {
 public:
  explicit Inbox(uint32_t ranks) : queues_(size_t{ranks} * kChannels), ended_(ranks) {}

  void put(uint32_t from, Channel channel, Message message);
  // From now on take() notices messages of this channel at once, which costs the processor
  // (engine/ranks/close_wait.h). Before any thread waits for one.
  void watch_closely(Channel channel) { closely_[static_cast<size_t>(channel)] = true; }
  // Waits for a message. After fail() or end(), what had arrived before comes first, then the
  // error.
  Result<Message> take(uint32_t from, Channel channel);
  bool has(uint32_t from, Channel channel);
  // Ends every wait. Only the first reason counts.
  void fail(const Error& error);
  // Ends the waits for messages of this rank, which sends no more.
  void end(uint32_t from, const Error& error);
  std::optional<Error> error();

 private:
  struct Queue {
    std::deque<Message> messages;
    std::condition_variable arrived;
    std::atomic<uint64_t> signals = 0;  // messages and errors so far
    CloseWait waits;                    // the waiting thread's
  };
  Queue& queue(uint32_t from, Channel channel) {
    return queues_[size_t{from} * kChannels + static_cast<size_t>(channel)];
  }

  // Waits for a while without the lock. REQUIRES: `lock` is held, and nothing has arrived.
  void look_for(Queue& place, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::vector<Queue> queues_;
  std::optional<Error> error_;
  std::vector<std::optional<Error>> ended_;  // by rank
  std::array<bool, kChannels> closely_ = {};
};

}  // namespace hearth
