// Steps of ranks that divide every layer, or the KV cache: where they meet, and what is fused in
// between.
#include "engine/program/segments.h"

#include <gtest/gtest.h>

#include "engine/program/describe.h"
#include "engine/program/row_division.h"
#include "tests/engine/program/planned_model.h"

namespace hearth::testing {
namespace {

StepPlan plan_of_share(const std::string& architecture, uint32_t rank, const StepBucket& bucket,
                       uint32_t ranks = 2, uint32_t divided_rows = 0) {
  MadeModelInfo info = small_model(architecture);
  info.layers = 3;
  info.heads = 8;
  info.kv_heads = 4;
  auto model = PlannedModel::create(info, {.index = rank, .count = ranks});
  EXPECT_TRUE(model.ok()) << model.error().message;
  return (*model)->plan(find_device_profile("h200").value(), bucket, true, divided_rows);
}

size_t meetings_of(const StepPlan& plan) { return cut_at_meetings(plan).size() - 1; }

TEST(Segments, ADeviceOnItsOwnHasOne) {
  const StepPlan plan = plan_of_share("llama", 0, step_of(4, 1), 1);
  const std::vector<PlanSegment> segments = cut_at_meetings(plan);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments.front().ops.size(), plan.ops.size());
  EXPECT_FALSE(segments.front().meeting);
}

// The embedding's sum, two sums per layer, and the logits.
TEST(Segments, RanksMeetTwicePerLayer) {
  for (const std::string architecture : {"llama", "gemma2", "phi3", "qwen3moe", "gpt-oss"})
    for (const StepBucket& bucket : {step_of(4, 1), step_of(2, 64)})
      for (const uint32_t rank : {0u, 1u}) {
        SCOPED_TRACE(architecture);
        const StepPlan plan = plan_of_share(architecture, rank, bucket);
        EXPECT_EQ(meetings_of(plan), 1 + 2 * 3 + 1u);
        const std::vector<PlanSegment> segments = cut_at_meetings(plan);
        EXPECT_TRUE(segments.back().ops.empty());
        const RankMeeting& logits = *segments[segments.size() - 2].meeting;
        EXPECT_EQ(logits.y, Value::kLogits);
        EXPECT_EQ(logits.rows, bucket.logit_rows);
        EXPECT_EQ(logits.y_width, 160u);
        EXPECT_LT(logits.x_width, 160u);
        // In the last layer only the rows whose logits are wanted are left.
        EXPECT_EQ(segments.front().meeting->rows, bucket.rows);
        EXPECT_EQ(segments[segments.size() - 3].meeting->rows, bucket.logit_rows);
      }
}

TEST(Segments, AStepWithoutLogitsEndsWithTheLastKeysAndValues) {
  StepBucket bucket = step_of(2, 64);
  bucket.logit_rows = 0;
  const StepPlan plan = plan_of_share("llama", 1, bucket);
  EXPECT_EQ(meetings_of(plan), 1 + 2 * 2u);
  EXPECT_FALSE(cut_at_meetings(plan).back().ops.empty());
}

// What is already there must be added once.
TEST(Segments, OnlyTheFirstRankAddsToTheHiddenState) {
  for (const uint32_t rank : {0u, 1u}) {
    size_t adds = 0, clears = 0;
    for (const PlannedOp& op : plan_of_share("qwen3moe", rank, step_of(4, 1)).ops) {
      if (const auto* product = op.as<PlannedProduct>()) adds += product->op.adds;
      clears += op.as<PlannedClear>() != nullptr;
    }
    EXPECT_EQ(adds, rank == 0 ? 3u : 0u);
    EXPECT_EQ(clears, rank == 0 ? 0u : 3u);
  }
}

// Partial sums of a product are in scratch memory, which does not outlive a segment.
TEST(Segments, NoFusionCrossesAMeeting) {
  for (const std::string architecture : {"llama", "gemma2", "qwen3moe"})
    for (const StepBucket& bucket : {step_of(1, 1), step_of(16, 1), step_of(2, 64)}) {
      const StepPlan plan = plan_of_share(architecture, 0, bucket);
      for (const PlanSegment& segment : cut_at_meetings(plan)) {
        if (!segment.meeting || segment.ops.empty()) continue;
        const auto* product = segment.ops.back().as<PlannedProduct>();
        EXPECT_TRUE(product == nullptr || (!product->parts && !product->begins));
        const auto* experts = segment.ops.back().as<PlannedExperts>();
        EXPECT_TRUE(experts == nullptr || !experts->parts);
      }
    }
}

// Norms and adds run on a rank's own rows.
TEST(Segments, DividedRowsAreGatheredWhereAllAreNeeded) {
  const StepBucket bucket = step_of(2, 64);
  for (const std::string architecture : {"llama", "gemma2", "phi3", "qwen3moe", "gpt-oss"})
    for (const uint32_t rank : {0u, 1u, 2u}) {
      SCOPED_TRACE(architecture);
      const StepPlan plan = plan_of_share(architecture, rank, bucket, 3, 1);
      const uint64_t own = own_rows({.index = rank, .count = 3}, bucket.rows).size;
      std::vector<Value> gathered;
      size_t own_sums = 0, sums = 0;
      for (const PlanSegment& segment : cut_at_meetings(plan)) {
        if (!segment.meeting) continue;
        const RankMeeting& meeting = *segment.meeting;
        sums += meeting.kind == MeetingKind::kSum;
        own_sums += meeting.kind == MeetingKind::kSumOwn;
        if (meeting.kind == MeetingKind::kGather) gathered.push_back(meeting.y);
        if (meeting.own_rows > 0) {
          EXPECT_EQ(meeting.own_rows, own);
        }
      }
      // The embedding's sum and those of two layers; the last layer's are of wanted rows alone.
      EXPECT_EQ(own_sums, 5u);
      EXPECT_EQ(sums, 2u);
      // Before each product that reads normed rows, and where wanted rows are picked.
      EXPECT_EQ(gathered, (std::vector<Value>{Value::kNormed, Value::kNormed, Value::kNormed,
                                              Value::kNormed, Value::kNormed, Value::kHidden}));
      for (const PlannedOp& op : plan.ops)
        if (const auto* norm = op.as<PlannedNorm>(); norm != nullptr && op.rows != 2) {
          EXPECT_EQ(norm->shape.rows, own);
        }
    }
}

TEST(Segments, AllRowsAreOfSomeRank) {
  for (const uint32_t ranks : {2u, 3u, 7u})
    for (const uint32_t rows : {7u, 8u, 100u}) {
      uint64_t next = 0;
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        const ShardRange range = own_rows({.index = rank, .count = ranks}, rows);
        EXPECT_EQ(range.first, next);
        EXPECT_GT(range.size, 0u);
        next += range.size;
      }
      EXPECT_EQ(next, rows);
    }
}

// Normed rows cross the link in the form that the products read.
TEST(Segments, GatheredRowsAreHalvesIfProductsReadThem) {
  size_t halves = 0, floats = 0;
  for (const PlanSegment& segment :
       cut_at_meetings(plan_of_share("llama", 0, step_of(2, 64), 2, 1))) {
    if (!segment.meeting || segment.meeting->kind != MeetingKind::kGather) continue;
    const bool half = segment.meeting->form == RowForm::kHalves;
    EXPECT_EQ(half, segment.meeting->y == Value::kNormed);
    (half ? halves : floats) += 1;
  }
  EXPECT_EQ(halves, 5u);
  EXPECT_EQ(floats, 1u);
}

// What follows a sum must be known, or ranks would add what is not theirs.
TEST(Segments, UnknownOpsAreNotDivided) {
  const Op sum{.rows = 8, .what = SumOp{.y = Value::kHidden, .width = 4, .adds = true}};
  const Op product{.rows = 8, .what = ProductOp{.y = Value::kHidden, .x = Value::kMlp}};
  const Op norm{.rows = 8, .what = NormOp{.width = 4}};
  EXPECT_TRUE(can_divide_rows(std::vector{product, sum, norm}));
  EXPECT_FALSE(can_divide_rows(std::vector{product, sum, product}));  // parallel branches
  EXPECT_FALSE(can_divide_rows(std::vector{norm, sum, norm}));
  Op projects = product;
  projects.what = ProductOp{.y = Value::kProjected, .x = Value::kMlp};
  EXPECT_FALSE(can_divide_rows(std::vector{projects, product, sum, norm}));
  const Op clear{.rows = 8, .what = ClearOp{.width = 4}};
  EXPECT_FALSE(can_divide_rows(std::vector{clear, product, sum, norm}));
}

StepPlan plan_of_dealt(const std::string& architecture, uint32_t rank, const StepBucket& bucket) {
  MadeModelInfo info = small_model(architecture);
  info.layers = 3;
  auto model = PlannedModel::create(info, {}, {.rank = rank, .ranks = 2});
  EXPECT_TRUE(model.ok()) << model.error().message;
  return (*model)->plan(find_device_profile("h200").value(), bucket);
}

// Only the last rank goes on after the last attention.
TEST(Segments, AStepThatMeetsOtherRanksNeverRunsAgainAndIsNoChain) {
  const StepBucket bucket = step_of(4, 1);
  const auto model = PlannedModel::create(small_model("llama"));
  ASSERT_TRUE(model.ok());
  const StepPlan alone = (*model)->plan(find_device_profile("h200").value(), bucket);
  EXPECT_TRUE(alone.repeats && alone.chained);
  for (const StepPlan& shared :
       {plan_of_share("llama", 0, bucket), plan_of_dealt("llama", 0, bucket)})
    EXPECT_FALSE(shared.repeats || shared.chained);
}

TEST(Segments, RanksThatShareKvBlocksMeetOncePerLayer) {
  for (const std::string architecture : {"llama", "gemma2", "qwen3moe", "gpt-oss"})
    for (const StepBucket& bucket : {step_of(1, 1), step_of(4, 1), step_of(2, 64)})
      for (const uint32_t rank : {0u, 1u}) {
        SCOPED_TRACE(architecture);
        const StepPlan plan = plan_of_dealt(architecture, rank, bucket);
        const std::vector<PlanSegment> segments = cut_at_meetings(plan);
        ASSERT_EQ(segments.size(), 4u);
        EXPECT_EQ(segments.back().ops.empty(), rank == 0);
        for (size_t i = 0; i < 3; ++i) {
          const RankMeeting& meeting = *segments[i].meeting;
          EXPECT_EQ(meeting.kind, MeetingKind::kMerge);
          EXPECT_EQ(meeting.on_last, i == 2);
          EXPECT_EQ(meeting.rows, bucket.rows);
          EXPECT_EQ(meeting.x_width * meeting.head_size, meeting.y_width * (meeting.head_size + 4));
          // A kernel's only form for this is floats, and rope writes to blocks that are here.
          const auto* attention = segments[i].ops.back().as<PlannedAttention>();
          ASSERT_NE(attention, nullptr);
          EXPECT_EQ(attention->form, RowForm::kFloats);
          EXPECT_FALSE(attention->rope);
        }
      }
}

TEST(Segments, OnlyTheLastRankHasWhatLogitsNeed) {
  MadeModelInfo info = small_model("llama");
  const auto bytes_of = [&](const BlockDeal& deal) {
    return PlannedModel::create(info, {}, deal).value()->model().weight_bytes;
  };
  EXPECT_EQ(bytes_of({.rank = 1, .ranks = 2}), bytes_of({}));
  EXPECT_LT(bytes_of({.rank = 0, .ranks = 2}), bytes_of({}));
}

TEST(Segments, AreDescribed) {
  const auto layers = describe(plan_of_share("qwen3moe", 1, step_of(4, 1)));
  ASSERT_TRUE(layers.ok()) << layers.error().message;
  const std::string text = to_text(*layers);
  EXPECT_NE(text.find("hidden = the sum of all ranks'"), std::string::npos) << text;
  EXPECT_NE(text.find("hidden = 0"), std::string::npos);
  EXPECT_NE(text.find("logits = all ranks' side by side"), std::string::npos);
  const auto dealt = describe(plan_of_dealt("llama", 1, step_of(4, 1)));
  ASSERT_TRUE(dealt.ok()) << dealt.error().message;
  EXPECT_NE(to_text(*dealt).find("attended = all ranks' attention_sums merged"), std::string::npos);
}

}  // namespace
}  // namespace hearth::testing
