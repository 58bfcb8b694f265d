// Planning a decode step allocates nothing on the host. Counts every operator new of the program.
#include <gtest/gtest.h>

#include "engine/scheduling/scheduler.h"
#include "tests/support/count_allocations.h"

namespace hearth {
namespace {

using testing::allocations;
using testing::counting;

// Allocations during 1,000 decode steps of 64 sequences, planned one step ahead as in the engine.
std::uint64_t allocations_of(const Policy& policy, std::uint32_t pool_blocks) {
  constexpr std::uint32_t kSequences = 64, kDecodes = 1000;
  Scheduler scheduler({.max_sequences = kSequences,
                       .max_step_tokens = kSequences * 32,
                       .context = 1200,
                       .pool_blocks = pool_blocks},
                      policy);
  const auto add = [&](RequestId id, std::uint32_t max_new_tokens) {
    std::vector<TokenId> prompt(8 + id % 17);
    for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(id * 100 + i);
    ASSERT_TRUE(scheduler.add(id, {.prompt = prompt, .max_new_tokens = max_new_tokens}).accepted());
  };
  std::chrono::milliseconds now{0};
  std::vector<RequestId> sampled, before;
  sampled.reserve(kSequences);
  before.reserve(kSequences);
  TokenId next = 0;
  const auto step = [&] {
    scheduler.set_time(now += std::chrono::milliseconds(10));
    const BatchPlan& plan = scheduler.plan();
    std::swap(sampled, before);
    sampled.clear();
    for (const BatchMember& member : plan.members)
      if (member.samples) sampled.push_back(member.request);
    for (RequestId id : before) scheduler.token(id, ++next);
    return plan.members.size();
  };

  for (RequestId id = 1; id <= kSequences; ++id) add(id, 1100);
  while (scheduler.totals().decode_tokens == 0) step();
  counting = true;
  const std::uint64_t first = allocations;
  const std::uint32_t blocks = scheduler.counts().blocks_used;
  for (std::uint32_t i = 0; i < kDecodes; ++i) {
    if (step() != kSequences)
      ADD_FAILURE() << "step " << i << " is not a decode step of all sequences";
  }
  const std::uint64_t last = allocations;
  counting = false;
  if (policy.kv == KvAllocation::kOnDemand) {
    EXPECT_GT(scheduler.counts().blocks_used, blocks + kSequences * 50)
        << "no sequence reached a new block";
  }
  return last - first;
}

TEST(PlanningAllocation, CounterCounts) {
  counting = true;
  const std::uint64_t before = allocations;
  // The operators themselves: a compiler may leave out a new-expression and its delete.
  ::operator delete(::operator new(4));
  counting = false;
  EXPECT_GT(allocations.load(), before);
}

TEST(PlanningAllocation, DecodeStepsAllocateNothing) {
  // Without a KV cache there are no decode steps.
  for (std::string_view name : policy_names())
    if (name != "no-cache") {
      EXPECT_EQ(allocations_of(*named_policy(name), 64 * 75), 0u) << name;
    }
}

}  // namespace
}  // namespace hearth
