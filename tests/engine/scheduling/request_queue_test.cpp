#include "engine/scheduling/request_queue.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

Sequence made(std::uint64_t arrival, std::int32_t priority, std::uint32_t prompt_tokens,
              std::uint64_t arrival_step = 0) {
  const std::vector<TokenId> prompt(prompt_tokens);
  Sequence sequence(arrival, TokenLedger(prompt, prompt_tokens + 1, {}));
  sequence.arrival = arrival;
  sequence.priority = priority;
  sequence.arrival_step = arrival_step;
  return sequence;
}

std::vector<RequestId> ids(const RequestQueue& queue) {
  std::vector<RequestId> result;
  for (std::uint32_t i = 0; i < queue.size(); ++i) result.push_back(queue[i].id);
  return result;
}

using Ids = std::vector<RequestId>;

TEST(RequestQueue, OrdersAndReorders) {
  Sequence a = made(0, 0, 50), b = made(1, 2, 90), c = made(2, 1, 10), d = made(3, 2, 10);
  RequestQueue queue(8, Order::kFcfs);
  for (Sequence* sequence : {&c, &a, &d, &b}) queue.insert(*sequence);
  EXPECT_EQ(ids(queue), (Ids{0, 1, 2, 3}));
  queue.set_order(Order::kPriority);
  EXPECT_EQ(ids(queue), (Ids{1, 3, 2, 0}));
  queue.set_order(Order::kShortestPrompt);
  EXPECT_EQ(ids(queue), (Ids{2, 3, 0, 1}));
  EXPECT_TRUE(queue.sorted());
  queue.erase(d);
  queue.erase(0u);
  EXPECT_EQ(ids(queue), (Ids{0, 1}));
}

TEST(RequestQueue, WaitingOutweighsPriority) {
  Sequence old_and_low = made(0, 0, 10, 0);
  Sequence high = made(1, 1, 10, 63), high_too_late = made(2, 1, 10, 65);
  RequestQueue queue(8, Order::kPriority);
  for (Sequence* sequence : {&high_too_late, &old_and_low, &high}) queue.insert(*sequence);
  EXPECT_EQ(ids(queue), (Ids{1, 0, 2}));
}

TEST(RequestQueue, WaitingOutweighsAShortPrompt) {
  Sequence old_and_long = made(0, 0, 500, 0);
  Sequence shorter = made(1, 0, 10, 489), shorter_too_late = made(2, 0, 10, 491);
  RequestQueue queue(8, Order::kShortestPrompt);
  for (Sequence* sequence : {&shorter_too_late, &old_and_long, &shorter}) queue.insert(*sequence);
  EXPECT_EQ(ids(queue), (Ids{1, 0, 2}));
}

}  // namespace
}  // namespace hearth
