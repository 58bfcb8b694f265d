// Groups of forks: shared blocks, and members that run, wait and are preempted together.
#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "engine/scheduling/scheduler.h"

namespace hearth {
namespace {

class SchedulerGroupsTest : public ::testing::Test {
 protected:
  static AddResult add(Scheduler& scheduler, RequestId id, std::uint32_t tokens,
                       std::uint32_t new_tokens, std::uint32_t seats = 1) {
    std::vector<TokenId> prompt(tokens);
    std::iota(prompt.begin(), prompt.end(), static_cast<TokenId>(id * 1000));
    return scheduler.add(
        id,
        {.prompt = prompt, .max_new_tokens = new_tokens, .with_host = seats > 1, .seats = seats});
  }
  static std::vector<RequestId> step(Scheduler& scheduler) {
    std::vector<RequestId> members;
    for (const BatchMember& member : scheduler.plan().members) members.push_back(member.request);
    EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
    return members;
  }
  // Adds a fork that continues all of the parent's text.
  static AddResult add_fork(Scheduler& scheduler, RequestId id, RequestId parent,
                            std::uint32_t new_tokens) {
    const auto text = scheduler.ledger(parent)->tokens();
    const std::vector<TokenId> prompt(text.begin(), text.end());
    const auto position = static_cast<std::uint32_t>(prompt.size());
    return scheduler.add(id, {.prompt = prompt,
                              .max_new_tokens = new_tokens,
                              .fork = ForkPoint{.parent = parent, .position = position}});
  }
  // Plans a step. REQUIRES: its last member is the request, whose first position is returned.
  static std::uint32_t first_position_of(RequestId last, Scheduler& scheduler) {
    const BatchPlan& plan = scheduler.plan();
    EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
    if (plan.members.empty() || plan.members.back().request != last) {
      ADD_FAILURE() << "request " << last << " is not the last member of the step";
      return 0;
    }
    return plan.members.back().first_position;
  }
  // Gives every member of the plan a token of its own.
  static void answer(Scheduler& scheduler, const std::vector<RequestId>& members) {
    for (const RequestId id : members) scheduler.token(id, static_cast<TokenId>(id));
    EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
  }
};

using Ids = std::vector<RequestId>;

TEST_F(SchedulerGroupsTest, ForksShareBlocksAndCopyOnWrite) {
  Scheduler scheduler({.max_sequences = 4, .pool_blocks = 40}, {});
  ASSERT_TRUE(add(scheduler, 1, 40, 20, 3).accepted());
  EXPECT_EQ(step(scheduler), Ids({1}));
  scheduler.fork(2, 1);
  scheduler.fork(3, 1);
  EXPECT_EQ(scheduler.counts().blocks_used, 3u);
  EXPECT_EQ(scheduler.counts().blocks_shared, 3u);
  answer(scheduler, {1, 2, 3});
  const BatchPlan& plan = scheduler.plan();
  EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
  // The partly filled block is copied for all but the last that writes to it.
  EXPECT_EQ(plan.copies.size(), 2u);
  EXPECT_EQ(plan.admitted, Ids({2, 3}));
  EXPECT_EQ(plan.tokens(), 3u);
  EXPECT_EQ(scheduler.counts().blocks_used, 5u);
  EXPECT_EQ(scheduler.counts().blocks_shared, 2u);

  // A member that becomes a fork gives its own blocks back.
  scheduler.fork(3, 2);
  EXPECT_EQ(scheduler.counts().blocks_used, 4u);
  answer(scheduler, {1, 2, 3});
  EXPECT_EQ(scheduler.ledger(3)->tokens()[40], 2u);
  EXPECT_EQ(scheduler.ledger(3)->tokens()[41], 3u);
  for (const RequestId id : {1, 2, 3}) scheduler.finish(id);
  EXPECT_EQ(scheduler.counts().blocks_used, 0u);
  EXPECT_TRUE(scheduler.idle());
}

TEST_F(SchedulerGroupsTest, SlotsOfAllMembersAreTakenAtAdmission) {
  Scheduler scheduler({.max_sequences = 4, .pool_blocks = 40}, {});
  ASSERT_TRUE(add(scheduler, 1, 10, 20, 3).accepted());
  ASSERT_TRUE(add(scheduler, 10, 10, 20, 2).accepted());
  ASSERT_TRUE(add(scheduler, 20, 10, 20).accepted());
  // The second group does not fit, and nobody overtakes it.
  EXPECT_EQ(step(scheduler), Ids({1}));
  scheduler.finish(1);
  EXPECT_EQ(step(scheduler), Ids({10, 20}));
}

TEST_F(SchedulerGroupsTest, AGroupIsPreemptedAndComesBackAsAWhole) {
  for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
    Scheduler scheduler({.max_sequences = 4, .pool_blocks = 9, .swap_blocks = 9},
                        {.preemption = preemption, .prefix_cache = false});
    ASSERT_TRUE(add(scheduler, 1, 60, 60).accepted());
    ASSERT_TRUE(add(scheduler, 10, 30, 10, 3).accepted());
    EXPECT_EQ(step(scheduler), Ids({1, 10}));
    scheduler.fork(11, 10);
    scheduler.fork(12, 10);
    answer(scheduler, {1, 10, 11, 12});
    Ids members = {1, 10};
    // The first request grows until the group has to give way, all of it at once.
    for (int i = 0; members.size() > 1; ++i) {
      ASSERT_LT(i, 60);
      members = step(scheduler);
      ASSERT_TRUE(members == Ids({1, 10, 11, 12}) || members == Ids({1}));
      // The host copies a beam in every round, also of a group that was preempted meanwhile.
      if (members.size() > 1) scheduler.fork(12, 11);
      answer(scheduler, members);
    }
    EXPECT_EQ(scheduler.sequence(12)->preemptions, 1u);
    const auto tokens = scheduler.ledger(12)->known();
    EXPECT_GT(tokens, 31u);
    scheduler.finish(1);
    members.clear();
    for (int i = 0; members.empty(); ++i) {
      ASSERT_LT(i, 3);
      members = step(scheduler);
    }
    EXPECT_EQ(members, Ids({10, 11, 12}));
    EXPECT_EQ(scheduler.ledger(12)->known(), tokens);
  }
}

// The host judges a step after the next one was planned, which may have preempted the group.
TEST_F(SchedulerGroupsTest, AGroupThatWasPreemptedMeanwhileIsForkedAllTheSame) {
  for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
    Scheduler scheduler({.max_sequences = 4, .pool_blocks = 9, .swap_blocks = 9},
                        {.preemption = preemption, .prefix_cache = false});
    ASSERT_TRUE(add(scheduler, 1, 100, 40).accepted());
    ASSERT_TRUE(add(scheduler, 10, 30, 10, 3).accepted());
    EXPECT_EQ(step(scheduler), Ids({1, 10}));
    answer(scheduler, {1});
    for (int i = 0; scheduler.sequence(10)->preemptions == 0; ++i) {
      ASSERT_LT(i, 30);
      EXPECT_EQ(step(scheduler), Ids({1}));
      answer(scheduler, {1});
    }
    scheduler.fork(11, 10);
    scheduler.fork(12, 10);
    answer(scheduler, {10, 11, 12});
    EXPECT_EQ(step(scheduler), Ids({1}));
    scheduler.finish(1);
    EXPECT_EQ(step(scheduler), Ids({10, 11, 12}));
  }
}

// It waited for good, because the host waits for the samples of all members, and a member that has
// one already computes nothing before that.
TEST_F(SchedulerGroupsTest, AGroupThatIsPreemptedBetweenItsSamplesComesBack) {
  Scheduler scheduler({.max_sequences = 8, .max_step_tokens = 16, .pool_blocks = 16}, {});
  ASSERT_TRUE(add(scheduler, 1, 25, 150).accepted());
  ASSERT_TRUE(add(scheduler, 2, 27, 100).accepted());
  ASSERT_TRUE(add(scheduler, 10, 20, 60, 2).accepted());
  std::set<RequestId> sampled;  // members of the group
  bool forked = false;
  int preempted_between = 0;
  for (int i = 0; !scheduler.idle(); ++i) {
    ASSERT_LT(i, 2000);
    const BatchPlan& plan = scheduler.plan();
    ASSERT_FALSE(plan.members.empty()) << i;
    ASSERT_EQ(scheduler.check_integrity(), std::nullopt);
    if (sampled.size() == 1 && !plan.preempted_recompute.empty()) ++preempted_between;
    for (const BatchMember& member : plan.members) {
      if (!member.samples) continue;
      if (member.request >= 10) {
        sampled.insert(member.request);
      } else {
        scheduler.token(member.request, 7);
        if (scheduler.ledger(member.request)->full()) scheduler.finish(member.request);
      }
    }
    if (sampled.size() < (forked ? 2u : 1u)) continue;
    if (!forked) scheduler.fork(11, 10);
    forked = true;
    sampled.clear();
    answer(scheduler, {10, 11});
    if (!scheduler.ledger(10)->full()) continue;
    for (const RequestId id : {10, 11}) scheduler.finish(id);
  }
  EXPECT_GT(preempted_between, 0);
}

// A member's text changes when it becomes a copy of another.
TEST_F(SchedulerGroupsTest, AForkThatWaitsForAMemberSharesItsPromptOnlyOnceTheTextHasChanged) {
  Scheduler scheduler({.max_sequences = 4, .pool_blocks = 40}, {.prefix_cache = false});
  ASSERT_TRUE(add(scheduler, 10, 30, 60, 2).accepted());
  EXPECT_EQ(step(scheduler), Ids({10}));
  scheduler.fork(11, 10);
  answer(scheduler, {10, 11});
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(step(scheduler), Ids({10, 11}));
    answer(scheduler, {10, 11});
  }
  EXPECT_EQ(step(scheduler), Ids({10, 11}));
  ASSERT_EQ(scheduler.ledger(11)->known(), 51u);
  ASSERT_TRUE(add_fork(scheduler, 17, 11, 5).accepted());
  scheduler.fork(11, 10);
  answer(scheduler, {10, 11});
  EXPECT_EQ(first_position_of(17, scheduler), 30u);
}

// The same for a fork that has run before, and starts again after a preemption.
TEST_F(SchedulerGroupsTest, APreemptedForkSharesOnlyWhatItsParentStillHas) {
  Scheduler scheduler({.max_sequences = 4, .pool_blocks = 16}, {.prefix_cache = false});
  ASSERT_TRUE(add(scheduler, 3, 20, 200).accepted());
  ASSERT_TRUE(add(scheduler, 4, 20, 200).accepted());
  for (int i = 0; i < 30; ++i) answer(scheduler, step(scheduler));
  ASSERT_EQ(scheduler.ledger(4)->known(), 50u);
  ASSERT_TRUE(add_fork(scheduler, 5, 4, 200).accepted());
  answer(scheduler, step(scheduler));
  EXPECT_EQ(scheduler.totals().forks, 1u);
  scheduler.truncate(4, 25);
  while (scheduler.sequence(5)->preemptions == 0) answer(scheduler, step(scheduler));
  ASSERT_GT(scheduler.ledger(4)->committed(), 50u);
  scheduler.finish(3);
  EXPECT_EQ(first_position_of(5, scheduler), 25u);
}

TEST_F(SchedulerGroupsTest, ThePoolStaysLargeEnoughForAGroup) {
  Scheduler scheduler({.max_sequences = 4, .pool_blocks = 40}, {});
  ASSERT_TRUE(add(scheduler, 10, 30, 10, 3).accepted());
  scheduler.set_limits(4, 512, 1);
  EXPECT_EQ(scheduler.limits().pool_blocks, 9u);
}

TEST_F(SchedulerGroupsTest, APriorityIsThatOfTheWholeGroup) {
  Scheduler scheduler({.max_sequences = 4, .pool_blocks = 40}, {});
  ASSERT_TRUE(add(scheduler, 1, 10, 20, 3).accepted());
  step(scheduler);
  scheduler.fork(2, 1);
  scheduler.fork(3, 1);
  answer(scheduler, {1, 2, 3});
  scheduler.set_priority(2, 7);
  for (const RequestId id : {1, 2, 3}) EXPECT_EQ(scheduler.sequence(id)->priority, 7);
  EXPECT_EQ(scheduler.check_integrity(), std::nullopt);
}

TEST_F(SchedulerGroupsTest, RefusesAGroupThatNeverFits) {
  const Scheduler scheduler({.max_sequences = 4, .pool_blocks = 10}, {});
  const std::vector<TokenId> prompt(30);
  EXPECT_EQ(check_request(scheduler.limits(), {.prompt = prompt, .max_new_tokens = 5, .seats = 5})
                .message,
            "the request runs 5 sequences at once; the limit is 4");
  EXPECT_EQ(check_request(scheduler.limits(), {.prompt = prompt, .max_new_tokens = 20, .seats = 3})
                .message,
            "3 sequences of 50 tokens need 12 blocks of 16 tokens; the KV cache has 10");
}

}  // namespace
}  // namespace hearth
