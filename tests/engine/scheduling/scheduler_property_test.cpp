// Random workloads over all combinations of switches, checked as far as possible after every step.
// simulated_engine.h shows how a wrong block is noticed.
#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "tests/engine/scheduling/simulated_engine.h"

namespace hearth {
namespace {

using test::SimulatedEngine;
using test::SimulatedRequest;

constexpr std::uint32_t kWorkloads = 300;
constexpr std::uint32_t kSteps = 2000;

// Every combination of the switches in turn.
Policy combination(std::uint32_t index) {
  const auto take = [&](std::uint32_t values) {
    const std::uint32_t value = index % values;
    index /= values;
    return value;
  };
  Policy policy;
  policy.admission = static_cast<Admission>(take(2));
  policy.layout = static_cast<Layout>(take(2));
  policy.phases = static_cast<Phases>(take(2));
  policy.kv = static_cast<KvAllocation>(take(3));
  policy.preemption = static_cast<Preemption>(take(2));
  policy.prefix_cache = take(2) == 1;
  policy.order = static_cast<Order>(take(3));
  policy.victim = static_cast<Victim>(take(3));
  policy.delivery = static_cast<Delivery>(take(2));
  policy.batch_window_ms = take(2) * 40;
  policy.tbt_target_ms = take(2) * 12;
  return policy;
}
constexpr std::uint32_t kCombinations = 2 * 2 * 2 * 3 * 2 * 2 * 3 * 3 * 2 * 2 * 2;

// What happened to the ledgers of sequences, beyond the scheduler's totals.
struct LedgerEvents {
  std::uint64_t accepted = 0, rejected = 0, other_branch = 0;  // see SimulatedEngine
  std::uint64_t trees = 0, trimmed = 0, forced = 0, taken_back = 0;
  // Judged after the request was preempted with its step in flight.
  std::uint64_t judged_waiting = 0, judged_swapped = 0;
  std::uint64_t held_back = 0;  // batches that waited for their window
  std::uint64_t late = 0;       // see SimulatedEngine

  void add(const LedgerEvents& other) {
    accepted += other.accepted;
    rejected += other.rejected;
    other_branch += other.other_branch;
    trees += other.trees;
    trimmed += other.trimmed;
    forced += other.forced;
    taken_back += other.taken_back;
    judged_waiting += other.judged_waiting;
    judged_swapped += other.judged_swapped;
    held_back += other.held_back;
    late += other.late;
  }
};

class Workload {
 public:
  Workload(std::uint32_t seed, bool switches)
      : random_(seed),
        // Seeds next to each other differ in every switch.
        policy_(combination(seed * 7919)),
        switches_(switches),
        tight_(number(0, 1) == 0),
        limits_{.max_sequences = number(1, 10),
                .max_step_tokens = number(0, 3) == 0 ? number(1, 12) : number(8, 160),
                .context = number(40, 200),
                .pool_blocks = tight_ ? number(8, 16) : number(2, 40),
                .swap_blocks = number(0, 2) == 0 ? 0 : number(1, 30),
                .max_queue = number(3, 20),
                .max_proposed = number(0, 60)},
        ends_(number(0, 1) == 0 ? 0 : number(10, 60)),
        engine_(limits_, policy_, ends_) {
    if (number(0, 2) == 0) policy_.max_chunk_tokens = number(1, 20);
    engine_.scheduler.set_policy(policy_);
    // Steps of 1 ms and 0.1 ms per token, with a much slower one now and then.
    engine_.seconds = [this](const StepLoad& load) {
      return (1e-3 + 1e-4 * load.rows) * (timing_() % 16 == 0 ? 20 : 1);
    };
    for (auto& beginning : prefixes_)
      for (std::uint32_t i = 0; i < 200; ++i) beginning.push_back(number(1, 4000));
    load_ = number(2, 30);
    // In a third of the workloads all requests decode plainly.
    proposes_ = number(0, 2) > 0;
    if (!proposes_) return;
    engine_.after_report = [this](RequestId id) { between_steps(id); };
    engine_.before_judging = [this](RequestId id) {
      const SequenceState state = engine_.scheduler.sequence(id)->state;
      if (state == SequenceState::kWaiting) ++events_.judged_waiting;
      if (state == SequenceState::kSwapped) ++events_.judged_swapped;
    };
    engine_.reports_late = [this](RequestId) { return proposes_ && number(0, 4) == 0; };
  }

  void run() {
    for (std::uint32_t step = 0; step < kSteps && !testing::Test::HasFatalFailure(); ++step) {
      if (number(0, load_) == 0)
        for (std::uint32_t n = number(1, 6); n > 0; --n) add();
      if (number(0, 40) == 0) cancel();
      if (switches_ && number(0, 25) == 0) change();
      if (number(0, 9) == 0) engine_.report_tokens();
      one_step();
    }
    proposes_ = false;
    // Every request ends, and in bounded time.
    const std::uint32_t live = engine_.live();
    // Without a KV cache each token takes a pass over the sequence, of several steps if need be.
    std::uint32_t budget = engine_.scheduler.limits().max_step_tokens;
    if (policy_.max_chunk_tokens > 0) budget = std::min(budget, policy_.max_chunk_tokens);
    const std::uint32_t passes =
        policy_.kv == KvAllocation::kNone ? 1 + limits_.context / budget : 1;
    for (std::uint32_t step = 0; engine_.live() > 0 && !testing::Test::HasFatalFailure(); ++step) {
      ASSERT_LT(step, 400u * passes * (live + 1)) << "some requests never end\n"
                                                  << describe(policy_);
      one_step();
    }
    const SchedulerCounts counts = engine_.scheduler.counts();
    EXPECT_TRUE(engine_.scheduler.idle());
    EXPECT_EQ(counts.blocks_used, 0u);
    EXPECT_EQ(counts.swap_used, 0u);
    if (!policy_.prefix_cache) {
      EXPECT_EQ(counts.blocks_free, engine_.scheduler.limits().pool_blocks);
    }
    for (const auto& [id, request] : engine_.requests)
      EXPECT_TRUE(engine_.output_is_right(request)) << "request " << id;
  }

  const SchedulerTotals& totals() const { return engine_.scheduler.totals(); }
  LedgerEvents events() const {
    LedgerEvents events = events_;
    events.accepted = engine_.accepted;
    events.rejected = engine_.rejected;
    events.other_branch = engine_.other_branch;
    events.late = engine_.late;
    return events;
  }

 private:
  std::uint32_t number(std::uint32_t low, std::uint32_t high) {
    return std::uniform_int_distribution<std::uint32_t>(low, high)(random_);
  }

  void add() {
    std::vector<TokenId> prompt;
    NewRequest request{.max_new_tokens = number(1, tight_ || number(0, 3) == 0 ? 100 : 20),
                       .priority = static_cast<std::int32_t>(number(0, 3)) - 1,
                       .cache_salt = number(0, 5) == 0 ? 1u : 0u};
    const auto parent = number(0, 3) == 0 ? any_live() : std::nullopt;
    if (parent) {
      // Like n completions of one prompt, or like a branch from the middle of an answer.
      const SimulatedRequest& from = engine_.requests.at(*parent);
      prompt = from.tokens;
      prompt.resize(number(0, 1) == 0 ? from.prompt_tokens
                                      : number(1, static_cast<std::uint32_t>(prompt.size())));
      request.fork = ForkPoint{.parent = *parent, .position = number(0, 200)};
    } else {
      prompt = prefixes_[number(0, 3)];
      prompt.resize(number(1, tight_ ? 20 : 120));
    }
    for (std::uint32_t n = number(0, 2) == 0 ? number(0, 30) : 0; n > 0; --n)
      prompt.push_back(number(1, 4000));
    request.prompt = prompt;
    request.with_host = proposes_ && number(0, 1) == 0;
    const RequestId id = next_id_++;
    const AddResult result = engine_.add(id, request);
    const std::size_t tokens = prompt.size() + request.max_new_tokens;
    const bool fits = tokens <= limits_.context &&
                      tokens - 1 <= engine_.scheduler.limits().pool_blocks * kTokensPerBlock;
    if (!fits) {
      ASSERT_EQ(result.refusal, Refusal::kTooLong);
    }
    if (result.refusal == Refusal::kQueueFull) {
      ASSERT_GE(engine_.scheduler.counts().waiting, limits_.max_queue);
    }
    ASSERT_TRUE(result.accepted() || !result.message.empty());
  }

  // What speculation, grammars and banned strings do with a request between two of its steps.
  void between_steps(RequestId id) {
    const TokenLedger& ledger = *engine_.scheduler.ledger(id);
    if (!proposes_ || ledger.full() || ledger.pending()) return;
    switch (number(0, 7)) {
      case 0:
      case 1:
        return propose(id, false);
      case 2:
        return propose(id, true);
      case 3:
        return commit_forced(id);
      case 4:
        return take_back(id);
      case 5:
        return engine_.scheduler.set_with_host(id, number(0, 1) == 0);
      default:
        return;
    }
  }

  // Proposes tokens of which about three in four are right.
  void propose(RequestId id, bool tree) {
    const SimulatedRequest& request = engine_.requests.at(id);
    std::vector<TokenId> tokens;
    std::vector<std::uint32_t> parents;
    std::vector<std::uint64_t> prefixes;
    for (std::uint32_t i = 0, count = number(1, tree ? 32 : 12); i < count; ++i) {
      std::uint32_t parent = i == 0 ? kNoParent : i - 1;
      if (tree) parent = number(0, i) == 0 ? kNoParent : number(0, i - 1);
      const std::uint64_t before = parent == kNoParent ? request.last_prefix() : prefixes[parent];
      const TokenId right = engine_.next_token(before);
      tokens.push_back(number(0, 3) == 0 ? right + 1 : right);
      prefixes.push_back(test::extend_prefix(before, tokens.back()));
      if (tree) parents.push_back(parent);
    }
    const std::uint32_t taken = engine_.scheduler.propose(id, tokens, parents);
    if (taken < tokens.size()) ++events_.trimmed;
    if (tree && taken > 0) ++events_.trees;
  }

  // Tokens that need no sampling, because only one continuation is possible.
  void commit_forced(RequestId id) {
    SimulatedRequest& request = engine_.requests.at(id);
    std::vector<TokenId> tokens;
    std::uint64_t prefix = request.last_prefix();
    for (std::uint32_t i = number(1, 6); i > 0; --i) {
      tokens.push_back(engine_.next_token(prefix));
      prefix = test::extend_prefix(prefix, tokens.back());
      if (tokens.back() == test::kEndToken) return;
    }
    const std::uint32_t taken = engine_.scheduler.propose(id, tokens);
    engine_.scheduler.commit(id, taken);
    for (std::uint32_t i = 0; i < taken; ++i) request.append(tokens[i]);
    events_.forced += taken;
  }

  // As a banned string does, whose last token was just sampled.
  void take_back(RequestId id) {
    SimulatedRequest& request = engine_.requests.at(id);
    const std::uint32_t keep = request.prompt_tokens + number(0, request.generated());
    if (keep == request.tokens.size()) return;
    engine_.scheduler.truncate(id, keep);
    request.truncate(keep);
    ++events_.taken_back;
  }

  std::optional<RequestId> any_live() {
    std::vector<RequestId> live;
    for (const auto& [id, request] : engine_.requests)
      if (!request.ended) live.push_back(id);
    if (live.empty()) return std::nullopt;
    return live[number(0, static_cast<std::uint32_t>(live.size()) - 1)];
  }

  void cancel() {
    if (const auto id = any_live()) engine_.cancel(*id);
  }

  void change() {
    const std::uint32_t what = number(0, 9);
    if (what < 2) {
      engine_.scheduler.set_limits(number(1, limits_.max_sequences), number(1, 160));
      return;
    }
    if (what < 4) {
      // Mostly small, so that requests are preempted; sometimes the whole pool.
      const std::uint32_t pool =
          number(0, 3) == 0 ? limits_.pool_blocks : number(1, limits_.pool_blocks);
      const SchedulerLimits& now = engine_.scheduler.limits();
      engine_.scheduler.set_limits(now.max_sequences, now.max_step_tokens, pool);
      return;
    }
    if (what == 4) {
      if (const auto id = any_live())
        engine_.set_priority(*id, static_cast<std::int32_t>(number(0, 5)) - 2);
      return;
    }
    policy_ = combination(number(0, kCombinations - 1));
    engine_.scheduler.set_policy(policy_);
  }

  Rank rank(const SimulatedRequest& request) const {
    const auto step = static_cast<std::int64_t>(request.arrival_step);
    switch (policy_.order) {
      case Order::kFcfs:
        return {0, request.arrival};
      case Order::kPriority:
        return {step - 64 * request.priority, request.arrival};
      case Order::kShortestPrompt:
        return {step + request.prompt_tokens, request.arrival};
    }
    return {};
  }

  void one_step() {
    engine_.scheduler.view_sequences(before_);
    const auto problem = engine_.step();
    if (engine_.scheduler.window_closes()) ++events_.held_back;
    ASSERT_FALSE(problem.has_value()) << *problem << "\n" << describe(policy_);
    const BatchPlan& plan = *engine_.last_plan;
    const SchedulerCounts counts = engine_.scheduler.counts();
    ASSERT_EQ(counts.blocks_used + counts.blocks_cached + counts.blocks_free,
              engine_.scheduler.limits().pool_blocks);
    check_order(plan);
    check_decodes(plan);
    check_rows(plan);
    check_preempted(plan);
    if (!switches_ && policy_.kv == KvAllocation::kOnDemand && policy_.layout == Layout::kPacked) {
      ASSERT_EQ(engine_.scheduler.counts().blocks_reserved, 0u);
    }
    // A reservation that took tokens of shared blocks back may have lost blocks.
    if (!switches_ && policy_.kv == KvAllocation::kReserve && events_.taken_back == 0) {
      ASSERT_TRUE(plan.preempted_recompute.empty() && plan.preempted_swap.empty());
    }
    if (policy_.preemption == Preemption::kRecompute) {
      ASSERT_TRUE(plan.preempted_swap.empty());
    }
  }

  // No request was admitted ahead of a better-ranked one that could have been.
  void check_order(const BatchPlan& plan) {
    const std::set<RequestId> admitted(plan.admitted.begin(), plan.admitted.end());
    for (const SequenceView& waiting : before_) {
      const bool waited = waiting.state == SequenceState::kWaiting;
      if (!waited || waiting.preemptions > 0 || admitted.contains(waiting.id)) continue;
      if (!waiting.ready || waiting.pending) continue;
      const SimulatedRequest& passed = engine_.requests.at(waiting.id);
      if (passed.fork) continue;
      for (RequestId id : admitted) {
        // A preempted member of the batch may come back before the next batch.
        const bool came_back = policy_.admission == Admission::kRequest &&
                               engine_.scheduler.sequence(id)->preemptions > 0;
        if (!came_back) {
          ASSERT_LT(rank(engine_.requests.at(id)), rank(passed));
        }
      }
    }
  }

  // With mixed phases every decode takes part in every step, whatever prompts there are.
  void check_decodes(const BatchPlan& plan) {
    if (policy_.phases != Phases::kMixed || policy_.layout != Layout::kPacked) return;
    if (policy_.kv == KvAllocation::kNone) return;  // every step computes whole sequences
    std::set<RequestId> there;
    for (const BatchMember& member : plan.members) there.insert(member.request);
    there.insert(plan.preempted_recompute.begin(), plan.preempted_recompute.end());
    there.insert(plan.preempted_swap.begin(), plan.preempted_swap.end());
    std::vector<RequestId> missing;
    std::uint32_t decodes = 0;
    for (const SequenceView& view : before_) {
      if (view.state != SequenceState::kRunning || view.computed < view.prompt_tokens) continue;
      if (view.committed > view.computed + 1 || view.committed == view.max_tokens) continue;
      if (!view.ready) continue;  // the host has not judged its last step
      ++decodes;
      if (!there.contains(view.id)) missing.push_back(view.id);
    }
    if (decodes <= engine_.scheduler.limits().max_step_tokens) {
      ASSERT_TRUE(missing.empty());
    }
  }

  void check_rows(const BatchPlan& plan) {
    if (plan.empty()) return;
    std::uint32_t proposed = 0;
    for (const BatchMember& member : plan.members) proposed += member.proposed;
    ASSERT_LE(proposed, limits_.max_proposed);
    ASSERT_LE(plan.tokens() + plan.padding_tokens, engine_.scheduler.limits().max_step_tokens);
    bool prompts = false, decodes = false;
    std::uint32_t longest = 0;
    for (const BatchMember& member : plan.members) {
      (member.decodes ? decodes : prompts) = true;
      longest = std::max(longest, member.tokens);
      ASSERT_TRUE(member.proposed == 0 || member.awaits_host);
      if (!member.decodes && policy_.max_chunk_tokens > 0) {
        ASSERT_LE(member.tokens, policy_.max_chunk_tokens);
      }
    }
    if (policy_.phases == Phases::kSeparate) {
      ASSERT_FALSE(prompts && decodes);
    }
    if (policy_.layout == Layout::kPacked) {
      ASSERT_EQ(plan.padding_tokens, 0u);
      return;
    }
    if (policy_.admission == Admission::kRequest && !switches_) {
      // Preempted members come back into the same batch; all other admissions start a new one.
      const bool preempted = totals().preemptions_recompute + totals().preemptions_swap > 0;
      if (!plan.admitted.empty()) batch_rows_ = static_cast<std::uint32_t>(plan.admitted.size());
      if (!preempted) {
        ASSERT_EQ(plan.tokens() + plan.padding_tokens, batch_rows_ * longest);
      }
    } else if (policy_.admission == Admission::kIteration) {
      ASSERT_EQ(plan.tokens() + plan.padding_tokens, plan.members.size() * longest);
    }
  }

  // A preempted request ranked behind every request that stayed.
  void check_preempted(const BatchPlan& plan) {
    if (policy_.victim != Victim::kYoungest) return;
    const auto protection = [&](RequestId id) {
      const SimulatedRequest& request = engine_.requests.at(id);
      return Rank{static_cast<std::int64_t>(request.arrival_step) - 64 * request.priority,
                  request.arrival};
    };
    for (const auto* list : {&plan.preempted_recompute, &plan.preempted_swap})
      for (RequestId id : *list)
        for (const BatchMember& member : plan.members)
          ASSERT_LT(protection(member.request), protection(id));
  }

  std::mt19937 random_, timing_;
  Policy policy_;
  bool switches_;
  bool tight_;  // short prompts and long answers in a small pool, so that requests are preempted
  SchedulerLimits limits_;
  std::uint32_t ends_;
  SimulatedEngine engine_;
  std::array<std::vector<TokenId>, 4> prefixes_;
  std::uint32_t load_ = 0;
  RequestId next_id_ = 1;
  std::uint32_t batch_rows_ = 0;
  std::vector<SequenceView> before_;
  bool proposes_ = false;
  LedgerEvents events_;
};

struct Everything {
  SchedulerTotals totals;
  LedgerEvents events;
};

Everything run_all(bool switches) {
  Everything all;
  SchedulerTotals& sum = all.totals;
  for (std::uint32_t seed = 0; seed < kWorkloads; ++seed) {
    SCOPED_TRACE("workload " + std::to_string(seed));
    Workload workload(seed, switches);
    workload.run();
    const SchedulerTotals& totals = workload.totals();
    sum.steps += totals.steps;
    sum.padding_tokens += totals.padding_tokens;
    sum.preemptions_recompute += totals.preemptions_recompute;
    sum.preemptions_swap += totals.preemptions_swap;
    sum.prefix_hit_tokens += totals.prefix_hit_tokens;
    sum.forks += totals.forks;
    sum.copies += totals.copies;
    sum.evictions += totals.evictions;
    sum.proposed_tokens += totals.proposed_tokens;
    all.events.add(workload.events());
    if (testing::Test::HasFailure()) break;
  }
  return all;
}

// A check that is never reached proves nothing: the workloads must reach all of them, and often.
void expect_everything_happened(const Everything& all) {
  const SchedulerTotals& sum = all.totals;
  const LedgerEvents& events = all.events;
  EXPECT_GT(sum.steps, 100'000u);
  EXPECT_GT(sum.padding_tokens, 100'000u);
  EXPECT_GT(sum.preemptions_recompute, 1'000u);
  EXPECT_GT(sum.preemptions_swap, 200u);
  EXPECT_GT(sum.prefix_hit_tokens, 50'000u);
  EXPECT_GT(sum.forks, 200u);
  EXPECT_GT(sum.copies, 200u);
  EXPECT_GT(sum.evictions, 5'000u);
  EXPECT_GT(sum.proposed_tokens, 20'000u);
  EXPECT_GT(events.accepted, 5'000u);
  EXPECT_GT(events.rejected, 5'000u);
  EXPECT_GT(events.trees, 1'000u);
  EXPECT_GT(events.other_branch, 200u);
  EXPECT_GT(events.trimmed, 200u);
  EXPECT_GT(events.forced, 1'000u);
  EXPECT_GT(events.taken_back, 1'000u);
  EXPECT_GT(events.judged_waiting, 50u);
  EXPECT_GT(events.judged_swapped, 20u);
  EXPECT_GT(events.held_back, 200u);
  EXPECT_GT(events.late, 1'000u);
}

TEST(SchedulerProperties, HoldUnderEveryPolicy) { expect_everything_happened(run_all(false)); }

TEST(SchedulerProperties, HoldWhilePoliciesAndLimitsChange) {
  expect_everything_happened(run_all(true));
}

}  // namespace
}  // namespace hearth
