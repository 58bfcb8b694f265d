#include "engine/program/fuse.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/ops/tuning/profile.h"
#include "engine/program/fusions.h"

namespace hearth {
namespace {

// Kernel choices for products, made once per weight shape and number of rows.
class MatmulChoices {
 public:
  explicit MatmulChoices(const FuseInput& input) : input_(input) {}

  const std::vector<MatmulChoice>& get(const WeightShape& weight, uint32_t rows) {
    const auto [place, is_new] = choices_.try_emplace({weight, rows});
    if (!is_new) return place->second;
    uint32_t outputs = 0;
    for (const SegmentShape& segment : weight) outputs += segment.rows;
    for (const SegmentShape& segment : weight) {
      const MatmulShape shape{.format = segment.format,
                              .rows = rows,
                              .inputs = segment.cols,
                              .outputs = segment.rows,
                              .sibling_outputs = outputs - segment.rows};
      place->second.push_back({choose_matmul(input_.caps, shape, input_.deterministic), shape});
    }
    return place->second;
  }

 private:
  const FuseInput& input_;
  std::map<std::pair<WeightShape, uint32_t>, std::vector<MatmulChoice>> choices_;
};

// Where `count` of a weight's outputs begin, from output `first` on: the outputs of its segments
// follow each other in memory, each [rows, outputs of the segment].
OutputPlace output_place(const WeightShape& weight, uint32_t rows, uint32_t first, uint32_t count) {
  uint32_t begin = 0;
  size_t segment = 0;
  while (segment + 1 < weight.size() && first >= begin + weight[segment].rows)
    begin += weight[segment++].rows;
  const uint32_t stride = weight[segment].rows, column = first - begin;
  return {.offset = (uint64_t{begin} * rows + column) * 4,
          .bytes = (uint64_t{stride} * (rows - 1) + count) * 4,
          .stride = stride,
          .column = column};
}

// Plans every op by itself, with kernels of its own.
class Planner {
 public:
  explicit Planner(const FuseInput& input) : input_(input), matmuls_(input) {}

  PlannedOp plan(const Op& op) {
    PlannedOp planned{.part = op.part, .layer = op.layer, .rows = op.rows, .what = PlannedAdd{}};
    std::visit([&](const auto& what) { planned.what = plan(what, op.rows); }, op.what);
    return planned;
  }

 private:
  PlannedEmbed plan(const EmbedOp& op, uint32_t rows) {
    const SegmentShape& table = input_.weights.get(op.weight).front();
    const EmbedShape shape{
        .format = table.format, .rows = rows, .width = table.cols, .vocabulary = table.rows};
    return {.op = op, .shape = shape, .kernel = choose_embed(input_.caps, shape)};
  }

  // Kernels of norms and ropes are chosen last: they depend on what is fused into them.
  PlannedNorm plan(const NormOp& op, uint32_t rows) {
    return {.op = op, .shape = {.rows = rows, .width = op.width}, .kernel = {}};
  }

  PlannedAdd plan(const AddOp& op, uint32_t) { return {.op = op}; }

  PlannedProduct plan(const ProductOp& op, uint32_t rows) {
    const auto& segments = matmuls_.get(input_.weights.get(op.weight), rows);
    return {.op = op,
            .segments = segments,
            .turns = plan_matmul_turns(segments, input_.matmul_scratch_bytes),
            .has_bias = op.bias && input_.weights.has(*op.bias)};
  }

  PlannedRopeKv plan(const RopeKvOp& op, uint32_t rows) {
    PlannedRopeKv planned{.op = op, .kernel = {}};
    RopeKvShape& shape = planned.op.shape;
    shape.rows = rows;
    shape.kv = input_.attention.kv;
    shape.trees = input_.bucket.trees;
    shape.dealt = input_.attention.dealt;
    const WeightShape& weight = input_.weights.get(op.weight);
    const uint32_t q = shape.heads * shape.head_size, kv = shape.kv_heads * shape.head_size;
    planned.q = output_place(weight, rows, 0, q);
    planned.k = output_place(weight, rows, q, kv);
    planned.v = output_place(weight, rows, q + kv, kv);
    return planned;
  }

  PlannedAttention plan(const AttentionOp& op, uint32_t) {
    const auto list = std::ranges::find(input_.windows, op.window) - input_.windows.begin();
    return {.op = op, .list = static_cast<size_t>(list)};
  }

  PlannedActivation plan(const ActivationOp& op, uint32_t rows) {
    const WeightShape& weight = input_.weights.get(op.weight);
    return {.op = op,
            .shape = {.rows = rows, .width = op.width, .activation = op.activation},
            .gate = output_place(weight, rows, 0, op.width),
            .up = output_place(weight, rows, op.width, op.width),
            .kernel = {}};
  }

  PlannedExperts plan(const ExpertsOp& op, uint32_t rows) {
    PlannedExperts planned{.op = op, .plan = {}};
    ExpertsShape& shape = planned.op.shape;
    shape.rows = rows;
    shape.gate_up = input_.weights.get(op.gate_up).front().format;
    shape.down = input_.weights.get(op.down).front().format;
    planned.plan = choose_experts(input_.caps, shape, input_.deterministic);
    planned.has_gate_up_bias = input_.weights.has(op.gate_up_bias);
    planned.has_down_bias = input_.weights.has(op.down_bias);
    return planned;
  }

  PlannedPick plan(const PickOp& op, uint32_t rows) {
    const GatherRowsShape shape{.rows = rows, .width = op.width, .source_rows = op.source_rows};
    return {.op = op, .shape = shape, .kernel = choose_gather_rows(input_.caps, shape)};
  }

  PlannedPool plan(const PoolOp& op, uint32_t rows) {
    const PoolRowsShape shape{.ranges = op.ranges, .width = op.width, .rows = rows};
    return {.op = op, .shape = shape, .kernel = choose_pool_rows(input_.caps, shape)};
  }

  PlannedKeep plan(const KeepOp& op, uint32_t rows) {
    const HiddenRowsShape shape{.rows = rows, .width = op.width};
    return {.op = op, .shape = shape, .kernel = choose_keep_hidden(input_.caps, shape)};
  }

  PlannedCompare plan(const CompareOp& op, uint32_t) {
    const HiddenRowsShape shape{.rows = op.comparisons, .width = op.width};
    return {.op = op, .shape = shape, .kernel = choose_compare_hidden(input_.caps, shape)};
  }

  PlannedClear plan(const ClearOp& op, uint32_t) { return {.op = op}; }
  PlannedSum plan(const SumOp& op, uint32_t) { return {.op = op}; }
  PlannedGather plan(const GatherOp& op, uint32_t) { return {.op = op}; }
  PlannedJoin plan(const JoinOp& op, uint32_t) { return {.op = op}; }
  PlannedMerge plan(const MergeOp& op, uint32_t) { return {.op = op}; }

  const FuseInput& input_;
  MatmulChoices matmuls_;
};

// The kernels of ops that others may have been fused into.
void choose_kernels(const FuseInput& input, PlannedOps& ops) {
  for (PlannedOp& op : ops) {
    if (auto* norm = op.as<PlannedNorm>()) {
      if (norm->addend)
        norm->shape.residuals = norm->addend->parts ? norm->addend->parts->splits : 1;
      norm->kernel = choose_rms_norm(input.caps, norm->shape, input.deterministic);
    } else if (auto* rope = op.as<PlannedRopeKv>()) {
      rope->kernel = choose_rope_kv(input.caps, rope->op.shape);
    } else if (auto* activation = op.as<PlannedActivation>()) {
      activation->kernel = choose_mlp(input.caps, activation->shape);
    }
  }
}

PlannedSampling plan_sampling(const FuseInput& input) {
  const StepBucket& bucket = input.bucket;
  PlannedSampling plan{.shape = {.rows = bucket.logit_rows,
                                 .vocab = input.vocabulary,
                                 .greedy = bucket.greedy,
                                 .extras = (bucket.extras & kStepRowExtras) != 0,
                                 .stages = (bucket.extras & kStepStages) != 0}};
  // Even without logits: a commit is counted once, by the step it came with.
  if ((bucket.extras & kStepCommits) != 0)
    plan.commits = choose_history_commit(input.caps, bucket.sequences);
  if (bucket.logit_rows == 0) return plan;
  if ((bucket.extras & kStepMixes) != 0) plan.mixes = choose_mix_logits(input.caps, plan.shape);
  plan.sampling = choose_sampling(input.caps, plan.shape);
  return plan;
}

}  // namespace

StepPlan fuse(const FuseInput& input, std::span<const Op> ops) {
  const bool repeats = !input.meets_ranks;
  const ChainTuning chain = tuning_profile(input.caps).chain;
  StepPlan step{.bucket = input.bucket,
                .repeats = repeats,
                .chained = repeats && input.caps.features.ordered_groups &&
                           input.bucket.rows <= chain.most_rows,
                .large_dispatch = chain.large_dispatch,
                .attention_shape = input.attention,
                .attention = choose_attention(input.caps, input.attention, input.deterministic),
                .layout = {},
                .ops = {},
                .sampling = plan_sampling(input)};
  step.layout = step_layout(input.bucket, step.attention.capacity, input.windows.size(),
                            input.attention.dealt);
  Planner planner(input);
  for (const Op& op : ops) step.ops.push_back(planner.plan(op));
  add_in_norms(step.ops);
  if (input.fusion) {
    leave_partial_sums(input.matmul_scratch_bytes, step.ops);
    leave_expert_results(step.ops);
    write_preferred_forms(step.attention, step.ops);
    gate_in_products(step.ops);
    norm_in_products(step.ops);
    norm_in_experts(step.ops);
    share_norms(step.ops);
    rope_in_attention(step.attention, step.ops);
  }
  choose_kernels(input, step.ops);
  return step;
}

}  // namespace hearth
