// Buckets that stand in for others, and lists of them.
#include "engine/model/step_bucket_list.h"

#include <set>

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr StepLimits kListedLimits{
    .rows = 700, .sequences = 12, .candidates = 8, .logit_rows = 20, .context = 5000};

// Every bucket that steps within the limits fall into.
template <class Visit>
void for_possible_buckets(const StepLimits& limits, Visit visit) {
  for (uint32_t rows = 1; rows <= limits.rows; rows += rows < 40 ? 1 : 31)
    for (uint32_t sequences = 1; sequences <= std::min(rows, limits.sequences); ++sequences)
      for (uint32_t logits = 0; logits <= std::min(rows, limits.logit_rows); logits += 3)
        for (const uint32_t tokens : {1u, 200u, 900u, 4999u}) {
          StepBucket bucket = choose_bucket(rows, sequences, rows == sequences ? 1 : 2, logits);
          bucket.context = bucket_context(tokens);
          visit(bucket);
        }
}

TEST(StepBucketList, EveryBucketHasAStandIn) {
  const std::vector<StepBucket> minimum =
      minimum_buckets(kListedLimits, {.trees = true, .mixes = true, .candidates = true});
  const std::set<StepBucket> known(minimum.begin(), minimum.end());
  for_possible_buckets(kListedLimits, [&](StepBucket bucket) {
    for (const uint8_t extras :
         {uint8_t{0}, uint8_t{kStepRowExtras}, uint8_t{kStepPools},
          uint8_t{kStepRowExtras | kStepHidden}}) {
      bucket.extras = extras;
      bucket.greedy = bucket.rows % 2 == 0;
      if (known.contains(bucket)) continue;
      const std::vector<StepBucket> stand_ins = stand_in_buckets(bucket, kListedLimits);
      ASSERT_FALSE(stand_ins.empty()) << bucket.rows << " " << bucket.sequences;
      for (const StepBucket& stand_in : stand_ins) EXPECT_TRUE(fits_into(bucket, stand_in));
      // At least one of them is in the minimum, and not twice as large.
      const auto in_minimum = std::ranges::find_if(
          stand_ins, [&](const StepBucket& stand_in) { return known.contains(stand_in); });
      ASSERT_NE(in_minimum, stand_ins.end()) << bucket.rows << " " << bucket.sequences;
      EXPECT_LT(in_minimum->rows, std::max(17u, 2 * bucket.rows));
      EXPECT_TRUE(std::ranges::is_sorted(
          stand_ins, {}, [](const StepBucket& each) { return each.sequence_rows > 1; }));
    }
  });
}

// Each candidate counts as a sequence.
TEST(StepBucketList, StepsWithCandidatesHaveAStandInAndAreCovered) {
  const StepNeeds needs{.candidates = true};
  const std::vector<StepBucket> minimum = minimum_buckets(kListedLimits, needs);
  const std::set<StepBucket> known(minimum.begin(), minimum.end());
  const std::vector<StepBucket> all = covering_buckets(kListedLimits, needs);
  const std::set<StepBucket> covered(all.begin(), all.end());
  for (uint32_t sequences = 1; sequences <= kListedLimits.most_sequences(); ++sequences) {
    StepBucket bucket = choose_bucket(sequences, sequences, 1, sequences);
    bucket.context = bucket_context(900);
    bucket.extras = kStepRowExtras | kStepHidden;
    EXPECT_TRUE(covered.contains(bucket)) << sequences;
    const std::vector<StepBucket> stand_ins = stand_in_buckets(bucket, kListedLimits);
    EXPECT_TRUE(std::ranges::any_of(stand_ins, [&](const StepBucket& stand_in) {
      return known.contains(stand_in);
    })) << sequences;
  }
}

TEST(StepBucketList, ASmallerBucketDoesNotFit) {
  const StepBucket step = choose_bucket(20, 2, 10, 2);
  EXPECT_TRUE(fits_into(step, step));
  const auto fits = [&](auto change) {
    StepBucket other = step;
    change(other);
    return fits_into(step, other);
  };
  EXPECT_FALSE(fits([](StepBucket& other) { other.rows = 18; }));
  EXPECT_FALSE(fits([](StepBucket& other) { other.sequences = 1; }));
  EXPECT_FALSE(fits([](StepBucket& other) { other.sequence_rows = 1; }));
  EXPECT_FALSE(fits([](StepBucket& other) { other.logit_rows = 1; }));
  EXPECT_FALSE(fits([](StepBucket& other) { other.context = 191; }));
  EXPECT_FALSE(fits([](StepBucket& other) { other.greedy = true; }));
  EXPECT_FALSE(fits([](StepBucket& other) { other.trees = true; }));
  EXPECT_FALSE(fits([](StepBucket& other) { other.extras = kStepCommits; }));
  EXPECT_TRUE(fits([](StepBucket& other) { other.rows = other.sequence_rows = 64; }));
  // A decode step may run as any other, but not the other way round.
  StepBucket decode = choose_bucket(4, 4, 1, 4);
  EXPECT_TRUE(fits_into(decode, choose_bucket(16, 4, 16, 4)));
  EXPECT_FALSE(fits_into(choose_bucket(4, 2, 2, 2), decode));
}

TEST(StepBucketList, ACompanionModelNeedsPlainStepsOnly) {
  for (const auto& list : {minimum_buckets(kListedLimits, {.extras = false}),
                           covering_buckets(kListedLimits, {.extras = false})}) {
    EXPECT_FALSE(list.empty());
    for (const StepBucket& bucket : list) {
      EXPECT_EQ(bucket.extras, 0);
      EXPECT_FALSE(bucket.trees);
    }
  }
}

TEST(StepBucketList, TheCoveringListHasEverySizeOnceItMatters) {
  std::set<uint32_t> decodes, mixed, logits, contexts;
  for (const StepBucket& bucket : covering_buckets(kListedLimits, {})) {
    (bucket.sequence_rows == 1 ? decodes : mixed).insert(bucket.rows);
    logits.insert(bucket.logit_rows);
    contexts.insert(bucket.context);
    EXPECT_FALSE(bucket.trees);
    EXPECT_LE(bucket.rows, bucket_size(kListedLimits.rows));
  }
  for_possible_buckets(kListedLimits, [&](const StepBucket& bucket) {
    EXPECT_TRUE((bucket.sequence_rows == 1 ? decodes : mixed).contains(bucket.rows));
    EXPECT_TRUE(bucket.logit_rows == 0 || logits.contains(bucket.logit_rows));
    EXPECT_TRUE(contexts.contains(bucket.context));
  });
}

}  // namespace
}  // namespace hearth
