// The memory of large messages, kept for the next ones. malloc returns blocks of 32 MiB and more to
// the system with every free(), and the pages of the next one are mapped one by one: copying 32 MiB
// into new memory took 24 ms, into memory that was used before 6.6 ms. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/ranks/link.h"

namespace hearth {

class SpareMessages {
 public:
  // malloc itself keeps the memory of smaller ones.
  static constexpr size_t kLeastBytes = 16 << 20;

  // Keeps the memory of at most so many messages.
  explicit SpareMessages(size_t most) : most_(most) {}

  // If there are too many, the smallest one goes.
  void keep(Message message) {
    if (message.capacity() < kLeastBytes) return;
    spare_.push_back(std::move(message));
    if (spare_.size() > most_)
      spare_.erase(std::ranges::min_element(spare_, {}, &Message::capacity));
  }
  // A message with any content and memory for `bytes`, if one is kept; an empty one otherwise.
  Message take(size_t bytes) {
    if (bytes < kLeastBytes) return {};
    const auto found = std::ranges::find_if(
        spare_, [&](const Message& message) { return message.capacity() >= bytes; });
    if (found == spare_.end()) return {};
    Message message = std::move(*found);
    spare_.erase(found);
    return message;
  }

 private:
  const size_t most_;
  std::vector<Message> spare_;
};

}  // namespace hearth
