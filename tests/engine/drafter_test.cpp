// The draft model's steps, on a stand-in for the device.
#include "engine/drafter.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/support/stand_in_executor.h"

namespace hearth {
namespace {

using testing::StandInExecutor;
using testing::StandInOptions;

TEST(Drafter, DraftsAreVerifiedUnreadOnlyIfTheHostDecidesNothingAboutThem) {
  const DrafterOptions right{.vocabulary = 100, .draft_vocabulary = 100, .shares_places = true};
  struct Case {
    const char* what;
    void (*change)(DrafterOptions& options);
    bool ids_needed;
    bool unread;
  };
  const Case cases[] = {
      {"as it is", [](DrafterOptions&) {}, false, true},
      {"a smaller vocabulary", [](DrafterOptions& o) { o.draft_vocabulary = 99; }, false, true},
      {"penalties", [](DrafterOptions&) {}, true, false},
      {"places of its own", [](DrafterOptions& o) { o.shares_places = false; }, false, false},
      {"trees", [](DrafterOptions& o) { o.branches = 3; }, false, false},
      {"--draft-min-p", [](DrafterOptions& o) { o.min_probability = 0.1f; }, false, false},
      {"a larger vocabulary", [](DrafterOptions& o) { o.draft_vocabulary = 101; }, false, false},
      {"an unknown vocabulary", [](DrafterOptions& o) { o.draft_vocabulary = 0; }, false, false}};
  for (const Case& each : cases) {
    DrafterOptions options = right;
    each.change(options);
    EXPECT_EQ(can_verify_unread(options, each.ids_needed), each.unread) << each.what;
  }
}

class DrafterTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kSlots = 3;

  static DraftJob job(RequestId request, std::span<const TokenId> tokens, uint32_t length) {
    DraftJob job{.request = request, .tokens = tokens, .length = length, .most = length};
    job.sampling.flags = params::kSamplingActive | params::kSamplingGreedy;
    return job;
  }

  StandInExecutor executor_{
      {.limits = {
           .max_sequences = kSlots, .max_step_tokens = 32, .context = 64, .pool_blocks = 12}}};
  Drafter drafter_{
      executor_,
      {.slots = kSlots, .step_rows = 32, .context = 64, .blocks = 12, .first_place = kSlots}};
};

// An unread token is to stand for the id that collect() reports, so it needs a place that no other
// draft of the round is written to.
TEST_F(DrafterTest, EveryUnreadTokenHasAPlaceOfItsOwn) {
  const std::vector<TokenId> first{1, 2, 3}, second{4, 5};
  std::vector<DraftJob> jobs{job(7, first, 4), job(8, second, kMaxProposed)};
  ASSERT_TRUE(drafter_.start(jobs).ok());
  EXPECT_EQ(jobs[0].unread.size(), 4u);
  EXPECT_EQ(jobs[1].unread.size(), kMaxProposed);
  std::set<uint32_t> places;
  for (const DraftJob& each : jobs)
    for (const TokenId token : each.unread) {
      EXPECT_TRUE(is_unread(token));
      EXPECT_GE(place_of_unread(token), kSlots);
      EXPECT_LT(place_of_unread(token), kSlots + drafted_places(kSlots));
      EXPECT_TRUE(places.insert(place_of_unread(token)).second);
    }
  ASSERT_TRUE(drafter_.collect(jobs).ok());
  EXPECT_EQ(jobs[0].proposal.size(), 4u);
  EXPECT_EQ(jobs[1].proposal.size(), kMaxProposed);
}

TEST_F(DrafterTest, TheLastTwoLevelsAreInFlightUntilTheyAreCollected) {
  std::string calls;
  executor_.on_call = [&](char call) { calls += call; };
  const std::vector<TokenId> tokens{1, 2, 3};
  std::vector<DraftJob> jobs{job(7, tokens, 4)};
  ASSERT_TRUE(drafter_.start(jobs).ok());
  EXPECT_EQ(calls, "sswsws");
  ASSERT_TRUE(drafter_.collect(jobs).ok());
  EXPECT_EQ(calls, "sswswsww");
  EXPECT_EQ(drafter_.last_work().levels, 4u);
  // The next draft finds what this one has computed: one row for the first level.
  std::vector<TokenId> continued = tokens;
  continued.insert(continued.end(), jobs[0].proposal.tokens.begin(), jobs[0].proposal.tokens.end());
  jobs[0] = job(7, continued, 4);
  ASSERT_TRUE(drafter_.start(jobs).ok());
  EXPECT_EQ(drafter_.last_work().first_rows, 1u);
}

// Rows with samplers that only sample_stages knows look greedy to other kernels.
TEST_F(DrafterTest, DraftsAreGreedyOnlyIfTheRequestIs) {
  std::vector<uint32_t> flags;
  executor_.on_submit = [&](const StepBatch& batch) { flags.push_back(batch.sampling[0].flags); };
  const std::vector<TokenId> tokens{1, 2, 3};
  const auto flags_with = [&](const SamplingOptions& options) {
    flags.clear();
    std::vector<DraftJob> jobs{job(7, tokens, 1)};
    jobs[0].sampling = make_sampling_row(options, {}).value();
    EXPECT_TRUE(drafter_.start(jobs).ok());
    EXPECT_TRUE(drafter_.collect(jobs).ok());
    return flags.at(0);
  };
  EXPECT_EQ(flags_with({.temperature = 0}), params::kSamplingActive | params::kSamplingGreedy);
  EXPECT_EQ(flags_with({.temperature = 0.8f, .top_k = 40}), params::kSamplingActive);
  EXPECT_EQ(flags_with({.temperature = 0.8f, .typical_p = 0.9f}), params::kSamplingActive);
}

TEST_F(DrafterTest, AfterAnErrorNothingIsProposed) {
  const std::vector<TokenId> tokens{1, 2, 3};
  executor_.faults.kind = ErrorKind::kOutOfMemory;
  std::vector<DraftJob> jobs{job(7, tokens, 4)};
  executor_.faults.wait.arm(4);
  ASSERT_TRUE(drafter_.start(jobs).ok());
  EXPECT_FALSE(drafter_.collect(jobs).ok());
  EXPECT_TRUE(jobs[0].proposal.empty());
}

}  // namespace
}  // namespace hearth
