// Requests that wait for a slot and blocks, in the order in which they are to be admitted. Ranks do
// not change while a request waits (ageing is part of them), so the order is kept, not computed.
//   fcfs             the order of arrival
//   priority         the higher first; 64 steps of waiting are worth one step of priority
//   shortest-prompt  the shorter first; a step of waiting is worth one token
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
  // The index-th to be admitted.
  Sequence& operator[](std::uint32_t index) const {
    return *entries_[entries_.size() - 1 - index].sequence;
  }

  void insert(Sequence& sequence);
  // Cheap for the first ones. REQUIRES: index < size().
  void erase(std::uint32_t index);
  // REQUIRES: it is there.
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

  std::vector<Entry> entries_;  // the first to be admitted stands last
  Order order_;
};

}  // namespace hearth
