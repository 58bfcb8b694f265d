// Requests that wait for a slot and blocks, in the order of admission. Ranks include ageing and do
// not change while a request waits, so the queue stays sorted without being sorted again.
//   fcfs             first come, first served
//   priority         higher priority first; 64 steps of waiting make up for one level of priority
//   shortest-prompt  shorter prompts first; one step of waiting makes up for one token
// Preempted requests keep their rank. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/scheduling/policy.h"
#include "engine/scheduling/sequence.h"

namespace hearth {

Rank queue_rank(const Sequence& sequence, Order order);

class RequestQueue {
 public:
  // Allocates only beyond `capacity` requests.
  RequestQueue(std::uint32_t capacity, Order order);

  std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }
  bool empty() const { return entries_.empty(); }
  // The request that is admitted after `index` others.
  Sequence& operator[](std::uint32_t index) const {
    return *entries_[entries_.size() - 1 - index].sequence;
  }

  void insert(Sequence& sequence);
  // Cheap near the front. REQUIRES: index < size().
  void erase(std::uint32_t index);
  // REQUIRES: the sequence is in the queue.
  void erase(const Sequence& sequence);

  Order order() const { return order_; }
  void set_order(Order order);
  bool sorted() const;

 private:
  struct Entry {
    Rank rank;
    Sequence* sequence = nullptr;
  };
  std::vector<Entry>::iterator position(const Rank& rank);

  std::vector<Entry> entries_;  // the first to be admitted is last
  Order order_;
};

}  // namespace hearth
