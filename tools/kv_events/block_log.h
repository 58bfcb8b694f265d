// Events of the prefix cache on their way from the engine thread to the publisher's thread: a
// bounded queue that the writer never waits for.
//
// If the reader falls so far behind that the queue is full, everything in it is replaced by one
// `kCleared`. A reader then knows too little for a while: blocks that were stored before are
// unknown to it until they are stored again. It never believes in a block that is not there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/scheduling/block_observer.h"

namespace hearth {

struct BlockEvent {
  enum class Kind : uint8_t { kStored, kRemoved, kCleared };
  Kind kind = Kind::kCleared;
  bool first = false;                                // of its sequence: there is no parent
  uint64_t hash = 0;                                 // the lower half of the BlockHash
  uint64_t parent = 0;                               // of a stored block that is not the first
  std::array<TokenId, kTokensPerBlock> tokens = {};  // of a stored block

  bool operator==(const BlockEvent&) const = default;
};

class BlockLog : public BlockObserver {
 public:
  // Holds up to `events`; allocates all of it now.
  explicit BlockLog(size_t events);
  ~BlockLog() override;
  BlockLog(const BlockLog&) = delete;
  BlockLog& operator=(const BlockLog&) = delete;

  // The writer.
  void stored(const BlockHash& hash, const BlockHash& parent,
              std::span<const TokenId, kTokensPerBlock> tokens) override;
  void removed(const BlockHash& hash) override;
  void cleared() override;

  // The reader. Appends up to `most` events to `events`, the oldest first, and removes them.
  void take(size_t most, std::vector<BlockEvent>& events);
  // An eventfd that becomes readable when the log is no longer empty, and by wake(). take() resets
  // it, unless events are left.
  int descriptor() const { return descriptor_; }
  void wake() const;
  // How often the log was full.
  uint64_t overflows() const;

 private:
  void push(const BlockEvent& event);

  const BlockHash root_ = root_hash(0);  // the parent of first blocks of requests without a salt
  const int descriptor_;
  mutable std::mutex mutex_;
  std::vector<BlockEvent> ring_;
  size_t begin_ = 0, size_ = 0;
  uint64_t overflows_ = 0;
};

}  // namespace hearth
