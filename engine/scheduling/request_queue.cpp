#include "engine/scheduling/request_queue.h"

#include <algorithm>
#include <cassert>
#include <functional>

namespace hearth {

Rank queue_rank(const Sequence& sequence, Order order) {
  switch (order) {
    case Order::kFcfs:
      return {0, sequence.arrival};
    case Order::kPriority:
      return protection_rank(sequence);
    case Order::kShortestPrompt: {
      const Sequence& request = sequence.followed != nullptr ? *sequence.followed : sequence;
      return {static_cast<std::int64_t>(sequence.arrival_step) + request.prompt_tokens(),
              sequence.arrival};
    }
  }
  return {};
}

RequestQueue::RequestQueue(std::uint32_t capacity, Order order) : order_(order) {
  entries_.reserve(capacity);
}

std::vector<RequestQueue::Entry>::iterator RequestQueue::position(const Rank& rank) {
  return std::partition_point(entries_.begin(), entries_.end(),
                              [&](const Entry& entry) { return entry.rank > rank; });
}

void RequestQueue::insert(Sequence& sequence) {
  const Rank rank = queue_rank(sequence, order_);
  entries_.insert(position(rank), {rank, &sequence});
}

void RequestQueue::erase(std::uint32_t index) {
  assert(index < entries_.size());
  entries_.erase(entries_.end() - 1 - index);
}

void RequestQueue::erase(const Sequence& sequence) {
  const auto entry = position(queue_rank(sequence, order_));
  assert(entry != entries_.end() && entry->sequence == &sequence);
  entries_.erase(entry);
}

void RequestQueue::set_order(Order order) {
  if (order == order_) return;
  order_ = order;
  for (Entry& entry : entries_) entry.rank = queue_rank(*entry.sequence, order);
  std::ranges::sort(entries_, std::ranges::greater(), &Entry::rank);
}

bool RequestQueue::sorted() const {
  for (const Entry& entry : entries_)
    if (entry.rank != queue_rank(*entry.sequence, order_)) return false;
  return std::ranges::is_sorted(entries_, std::ranges::greater(), &Entry::rank);
}

}  // namespace hearth
