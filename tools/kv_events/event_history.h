// The latest batches, for subscribers that missed some. Bounded in number and in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace hearth {

class EventHistory {
 public:
  struct Batch {
    uint64_t sequence = 0;
    std::vector<uint8_t> bytes;
  };

  EventHistory(size_t most_batches, size_t most_bytes)
      : most_batches_(most_batches), most_bytes_(most_bytes) {}

  // The newest batch is kept, whatever its size.
  void add(uint64_t sequence, std::vector<uint8_t> bytes) {
    bytes_ += bytes.size();
    batches_.push_back({sequence, std::move(bytes)});
    while (batches_.size() > 1 && (batches_.size() > most_batches_ || bytes_ > most_bytes_)) {
      bytes_ -= batches_.front().bytes.size();
      batches_.pop_front();
    }
  }

  // The oldest first.
  const std::deque<Batch>& batches() const { return batches_; }

 private:
  const size_t most_batches_, most_bytes_;
  size_t bytes_ = 0;
  std::deque<Batch> batches_;
};

}  // namespace hearth
