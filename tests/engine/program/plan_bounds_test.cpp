// Plans for devices that we do not have, recorded with buffers as large as a runner would allocate
// for them: no kernel is given a slice that is not within its buffer.
#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/model/step_meetings.h"
#include "engine/program/record.h"
#include "engine/program/segments.h"
#include "runtime/pipeline_collector.h"
#include "tests/engine/program/planned_model.h"

namespace hearth::testing {
namespace {

// Buffers of the sizes of Activations, and others of any size.
class BoundBuffers {
 public:
  explicit BoundBuffers(const ActivationSizes& sizes)
      : cache_{any_.all(), any_.all(), any_.all(), any_.all()} {
    const uint64_t bytes[] = {sizes.hidden, sizes.normed,  sizes.projected, sizes.picked,
                              sizes.qkv,    sizes.queries, sizes.attended,  sizes.gate_up,
                              sizes.mlp,    sizes.logits,  sizes.routed,    sizes.attention_sums};
    static_assert(std::size(bytes) == kValueCount);
    for (size_t i = 0; i < kValueCount; ++i) values_[i] = of(bytes[i]);
    scratch_ = of(sizes.matmul_scratch);
    counts_ = of(sizes.matmul_counts);
    norm_state_ = of(sizes.norm_state);
    attention_counts_bytes_ = sizes.attention_counts;
    attention_scratch_ = of(sizes.attention_counts + sizes.attention_partials);
  }
  // Of a value's buffer.
  uint64_t bytes(Value value) const { return values_[static_cast<size_t>(value)].bytes(); }
  BoundBuffers(const BoundBuffers&) = delete;
  BoundBuffers& operator=(const BoundBuffers&) = delete;

  StepBuffers buffers() const {
    const BufferSlice any = any_.all();
    StepBuffers buffers{
        .values = {},
        .weight = [any](const WeightName&, size_t) { return any; },
        .experts = [any](const WeightName&,
                         const WeightName&) { return ExpertWeights{.matrices = any, .bias = any}; },
        .cache = [this](uint32_t) -> const PagedKv& { return cache_; },
        .rope_table = any,
        .window_rope_table = any,
        .inputs = any,
        .sampled_ids = any,
        .matmul_scratch = scratch_.all(),
        .matmul_counts = counts_.all(),
        .norm_state = norm_state_.all(),
        .attention_counts = attention_scratch_.slice(0, attention_counts_bytes_),
        .attention_partials = attention_scratch_.slice(
            attention_counts_bytes_, attention_scratch_.bytes() - attention_counts_bytes_),
        .pooled = any,
        .similarity = any,
        .pages = {.table = any}};
    for (size_t i = 0; i < kValueCount; ++i) buffers.values[i] = &values_[i];
    return buffers;
  }

 private:
  // As Activations::allocate().
  static Buffer of(uint64_t bytes) { return Buffer::stand_in(256, std::max<uint64_t>(bytes, 256)); }

  const Buffer any_ = Buffer::of_any_size();
  const PagedKv cache_;
  std::array<Buffer, kValueCount> values_;
  Buffer scratch_, counts_, norm_state_;
  uint64_t attention_counts_bytes_ = 0;
  Buffer attention_scratch_;  // counts, then partial results
};

std::vector<StepBucket> steps_within(const StepLimits& limits) {
  std::vector<StepBucket> steps = {step_of(1, limits.rows), step_of(2, limits.rows / 2)};
  for (uint32_t sequences = 1; sequences <= limits.sequences; sequences *= 2)
    for (const uint32_t context : {100u, limits.context - 1})
      steps.push_back(step_of(sequences, 1, context));
  for (const uint32_t rows : {2u, 8u, 17u, 64u}) steps.push_back(step_of(3, rows));
  steps.push_back(step_of(4, 4));
  steps.back().trees = true;
  return steps;
}

constexpr StepLimits kLimits{.rows = 256, .sequences = 64, .logit_rows = 64, .context = 2048};

MadeModelInfo model_of(const Architecture& architecture) {
  MadeModelInfo info = small_model(std::string(architecture.name()));
  info.width = 1024;
  info.heads = 8;
  info.kv_heads = 4;
  info.head_size = 128;
  info.mlp_width = 1536;
  info.vocabulary = 4096;
  info.context = kLimits.context;
  return info;
}

// Every segment of the step, and what crosses the link after it. Returns the meetings.
size_t expect_bounded(const StepPlanner& planner, const ModelConfig& config,
                      const StepBucket& bucket, const BoundBuffers& bound) {
  const StepPlan plan = planner.plan(bucket);
  const MeetingBytes most =
      meeting_bytes(config, bucket_size(kLimits.rows), std::bit_ceil(kLimits.logit_rows));
  const StepBuffers buffers = bound.buffers();
  PipelineCollector pipelines;
  CommandRecorder recorder = CommandRecorder::dry();
  size_t meetings = 0;
  for (const PlanSegment& segment : cut_at_meetings(plan)) {
    const Status status = record_plan(recorder, pipelines, plan, segment.ops, buffers);
    EXPECT_TRUE(status.ok()) << status.error().message;
    if (!segment.meeting) continue;
    ++meetings;
    const RankMeeting& meeting = *segment.meeting;
    EXPECT_LE(meeting.x_bytes(), std::min(most.leaving, bound.bytes(meeting.x)));
    if (!meeting.on_last || config.samples()) {
      EXPECT_LE(meeting.y_bytes(), std::min(most.entering, bound.bytes(meeting.y)));
    }
  }
  return meetings;
}

TEST(PlanBounds, NoPlanLeavesTheBuffersOfItsRunner) {
  for (const Architecture* architecture : all_architectures()) {
    const auto planned = PlannedModel::create(model_of(*architecture));
    ASSERT_TRUE(planned.ok()) << planned.error().message;
    const ModelPlan& model = (*planned)->model();
    for (const DeviceProfile& device : device_profiles())
      for (const bool fusion : {true, false}) {
        const ActivationSizes sizes =
            activation_sizes(device.caps, model.config, model.matmuls, kLimits);
        const BoundBuffers bound(sizes);
        const StepPlanner planner({.caps = device.caps,
                                   .model = model,
                                   .limits = kLimits,
                                   .matmul_scratch_bytes = sizes.matmul_scratch,
                                   .fusion = fusion});
        for (const StepBucket& bucket : steps_within(kLimits)) {
          SCOPED_TRACE(fmt::format("{} on {}, {} rows, {} sequences", architecture->name(),
                                   device.name, bucket.rows, bucket.sequences));
          EXPECT_EQ(expect_bounded(planner, model.config, bucket, bound), 0u);
        }
      }
  }
}

// The shares of a tensor split, with whole and with divided rows. Three ranks have uneven shares.
TEST(PlanBounds, NoShareOfATensorSplitLeavesTheBuffersOfItsRunner) {
  size_t shares = 0;
  for (const Architecture* architecture : all_architectures())
    for (const TensorShard shard :
         {TensorShard{0, 2}, TensorShard{1, 2}, TensorShard{0, 3}, TensorShard{2, 3}}) {
      const auto planned = PlannedModel::create(model_of(*architecture), shard);
      if (!planned.ok()) {
        EXPECT_EQ(planned.error().kind, ErrorKind::kUnsupported) << planned.error().message;
        continue;
      }
      ++shares;
      const ModelPlan& model = (*planned)->model();
      for (const DeviceProfile& device : device_profiles())
        for (const uint32_t divided_rows : {0u, 1u}) {
          StepLimits limits = kLimits;
          limits.divided_rows = divided_rows;
          const ActivationSizes sizes =
              activation_sizes(device.caps, model.config, model.matmuls, limits);
          const BoundBuffers bound(sizes);
          const StepPlanner planner({.caps = device.caps,
                                     .model = model,
                                     .limits = limits,
                                     .matmul_scratch_bytes = sizes.matmul_scratch});
          for (const StepBucket& bucket : steps_within(limits)) {
            SCOPED_TRACE(
                fmt::format("{} on {}, share {} of {}, divided from {}, {} rows, {} sequences",
                            architecture->name(), device.name, shard.index + 1, shard.count,
                            divided_rows, bucket.rows, bucket.sequences));
            EXPECT_GT(expect_bounded(planner, model.config, bucket, bound),
                      2 * model.config.layers);
          }
        }
    }
  EXPECT_GT(shares, 2 * all_architectures().size());
}

}  // namespace
}  // namespace hearth::testing
