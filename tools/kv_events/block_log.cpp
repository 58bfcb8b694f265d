#include "tools/kv_events/block_log.h"

#include <algorithm>

#include <sys/eventfd.h>
#include <unistd.h>

namespace hearth {

BlockLog::BlockLog(size_t events)
    : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), ring_(std::max<size_t>(events, 2)) {}

BlockLog::~BlockLog() {
  if (descriptor_ >= 0) close(descriptor_);
}

void BlockLog::stored(const BlockHash& hash, const BlockHash& parent,
                      std::span<const TokenId, kTokensPerBlock> tokens) {
  BlockEvent event{.kind = BlockEvent::Kind::kStored,
                   .first = parent == root_,
                   .hash = hash.low,
                   .parent = parent.low};
  std::ranges::copy(tokens, event.tokens.begin());
  push(event);
}

void BlockLog::removed(const BlockHash& hash) {
  push({.kind = BlockEvent::Kind::kRemoved, .hash = hash.low});
}

void BlockLog::cleared() { push({.kind = BlockEvent::Kind::kCleared}); }

void BlockLog::push(const BlockEvent& event) {
  bool was_empty = false;
  {
    const std::lock_guard lock(mutex_);
    was_empty = size_ == 0;
    if (size_ == ring_.size()) {
      ++overflows_;
      ring_[begin_] = {.kind = BlockEvent::Kind::kCleared};
      size_ = 1;
    }
    ring_[(begin_ + size_) % ring_.size()] = event;
    ++size_;
  }
  if (was_empty) wake();
}

void BlockLog::wake() const {
  const uint64_t one = 1;
  // Fails only if the descriptor is readable already.
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof(one));
}

void BlockLog::take(size_t most, std::vector<BlockEvent>& events) {
  const std::lock_guard lock(mutex_);
  const size_t count = std::min(most, size_);
  for (size_t i = 0; i < count; ++i) events.push_back(ring_[(begin_ + i) % ring_.size()]);
  begin_ = (begin_ + count) % ring_.size();
  size_ -= count;
  if (size_ > 0) return;
  uint64_t signals = 0;
  [[maybe_unused]] const ssize_t read_bytes = read(descriptor_, &signals, sizeof(signals));
}

uint64_t BlockLog::overflows() const {
  const std::lock_guard lock(mutex_);
  return overflows_;
}

}  // namespace hearth
