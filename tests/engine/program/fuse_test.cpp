// How a step's program is made and fused, on devices that we do not have.
#include "engine/program/fuse.h"

#include <gtest/gtest.h>

#include "engine/program/describe.h"
#include "engine/program/step_program.h"
#include "tests/engine/program/planned_model.h"

namespace hearth::testing {
namespace {

MadeModelInfo model_of(const std::string& architecture) {
  MadeModelInfo info = small_model(architecture);
  info.layers = 3;
  info.width = 1024;
  info.heads = 8;
  info.kv_heads = 4;
  info.head_size = 128;
  info.mlp_width = 4096;
  info.vocabulary = info.context = 4096;
  return info;
}

std::unique_ptr<PlannedModel> planned_model(const std::string& architecture) {
  auto model = PlannedModel::create(model_of(architecture));
  EXPECT_TRUE(model.ok()) << model.error().message;
  return model.ok() ? std::move(model).value() : nullptr;
}

DeviceCaps profile(std::string_view name) { return find_device_profile(name).value(); }

std::vector<Op> program(const PlannedModel& planned, const StepBucket& bucket) {
  const ModelPlan& model = planned.model();
  const std::vector<uint32_t> layers = {0, 1, 2};
  return step_program(
      {.config = model.config,
       .weights = model.shapes,
       .bucket = bucket,
       .layers = layers,
       .emit_layer = [&](Builder& builder) { model.architecture->emit_layer(builder); }});
}

template <class T>
size_t count_of(const std::vector<Op>& ops) {
  return static_cast<size_t>(
      std::ranges::count_if(ops, [](const Op& op) { return op.as<T>() != nullptr; }));
}

template <class T>
size_t count_of(const StepPlan& plan) {
  return static_cast<size_t>(
      std::ranges::count_if(plan.ops, [](const PlannedOp& op) { return op.as<T>() != nullptr; }));
}

size_t shared_norms(const StepPlan& plan) {
  return static_cast<size_t>(std::ranges::count_if(plan.ops, [](const PlannedOp& op) {
    const auto* product = op.as<PlannedProduct>();
    return product != nullptr && product->finishes;
  }));
}

TEST(StepProgram, OnlyWantedRowsAfterTheLastAttention) {
  const auto model = planned_model("llama");
  const StepBucket bucket = step_of(2, 16);
  const std::vector<Op> ops = program(*model, bucket);
  EXPECT_EQ(count_of<PickOp>(ops), 2u);
  bool picked = false;
  for (const Op& op : ops) {
    picked |= op.as<PickOp>() != nullptr;
    EXPECT_EQ(op.rows, picked ? bucket.logit_rows : bucket.rows);
    if (const auto* norm = op.as<NormOp>()) {
      EXPECT_EQ(norm->x, picked ? Value::kPicked : Value::kHidden);
    }
  }
  // In a decode step every row is wanted.
  EXPECT_EQ(count_of<PickOp>(program(*model, step_of(4, 1))), 0u);
}

TEST(StepProgram, AStepWithoutLogitsEndsWithTheLastWriteToTheCache) {
  const auto model = planned_model("gemma2");
  for (const uint32_t rows : {1u, 16u}) {
    StepBucket bucket = choose_bucket(rows, 1, rows, 0);
    const std::vector<Op> ops = program(*model, bucket);
    ASSERT_FALSE(ops.empty());
    EXPECT_NE(ops.back().as<RopeKvOp>(), nullptr);
    EXPECT_EQ(ops.back().layer, 2u);
    EXPECT_EQ(count_of<AttentionOp>(ops), 2u);
  }
}

TEST(StepProgram, HiddenStatesNeedAllRowsUpToTheFinalNorm) {
  const auto model = planned_model("llama");
  StepBucket bucket = step_of(2, 16);
  bucket.extras = kStepPools | kStepHidden;
  const std::vector<Op> ops = program(*model, bucket);
  ASSERT_GE(ops.size(), 6u);
  const Op* last = &ops.back();
  EXPECT_EQ(std::get<ProductOp>(last[0].what).x, Value::kPicked);
  EXPECT_EQ(last[0].rows, bucket.logit_rows);
  EXPECT_EQ(std::get<PickOp>(last[-1].what).x, Value::kNormed);
  EXPECT_NE(last[-2].as<CompareOp>(), nullptr);
  EXPECT_NE(last[-3].as<KeepOp>(), nullptr);
  EXPECT_NE(last[-4].as<PoolOp>(), nullptr);
  for (const Op* op = ops.data(); op < last - 1; ++op) EXPECT_EQ(op->rows, bucket.rows);
}

// In a decode step, too, whose final norm would otherwise be part of another kernel, or write halves.
TEST(Fuse, HiddenStatesThatAreKeptAreFloats) {
  const auto model = planned_model("llama");
  for (const DeviceProfile& device : device_profiles())
    for (const uint32_t sequences : {1u, 4u, 32u}) {
      StepBucket bucket = step_of(sequences, 1);
      bucket.extras = kStepRowExtras | kStepHidden;
      const StepPlan plan = model->plan(device.caps, bucket);
      size_t keep = 0;
      while (keep < plan.ops.size() && plan.ops[keep].as<PlannedKeep>() == nullptr) ++keep;
      ASSERT_LT(keep + 1, plan.ops.size());
      ASSERT_GT(keep, 0u);
      const auto* norm = plan.ops[keep - 1].as<PlannedNorm>();
      ASSERT_NE(norm, nullptr);
      EXPECT_EQ(norm->shape.form, RowForm::kFloats);
      EXPECT_NE(plan.ops[keep + 1].as<PlannedCompare>(), nullptr);
    }
}

// Only adds have no kernel of their own.
TEST(Fuse, WithoutFusionEveryOpHasItsOwnKernels) {
  for (const Architecture* architecture : all_architectures()) {
    const auto model = planned_model(std::string(architecture->name()));
    ASSERT_NE(model, nullptr);
    for (const DeviceProfile& device : device_profiles())
      for (const StepBucket& bucket : {step_of(1, 1), step_of(8, 1), step_of(2, 32)}) {
        const std::vector<Op> ops = program(*model, bucket);
        const StepPlan plan = model->plan(device.caps, bucket, /*fusion=*/false);
        EXPECT_EQ(plan.ops.size() + count_of<AddOp>(ops), ops.size());
        const auto layers = describe(plan);
        ASSERT_TRUE(layers.ok()) << layers.error().message;
        // Fused plans can be recorded, too, and never have more ops.
        const StepPlan fused = model->plan(device.caps, bucket);
        EXPECT_LE(fused.ops.size(), plan.ops.size());
        EXPECT_TRUE(describe(fused).ok());
      }
  }
}

TEST(Fuse, ASingleRowIsNormedRopedAndGatedByOtherKernels) {
  const auto model = planned_model("llama");
  const StepPlan plan = model->plan(profile("h200"), step_of(1, 1));
  EXPECT_EQ(count_of<PlannedNorm>(plan), 0u);
  EXPECT_EQ(count_of<PlannedRopeKv>(plan), 0u);
  EXPECT_EQ(count_of<PlannedActivation>(plan), 0u);
  EXPECT_EQ(count_of<PlannedProduct>(plan), 3u * 4 + 1);
}

TEST(Fuse, TwoProductsOfALayerShareTheNormBetweenThem) {
  const DeviceCaps caps = profile("h200");
  const StepPlan plan = planned_model("llama")->plan(caps, step_of(8, 1));
  EXPECT_EQ(shared_norms(plan), 3u);
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const auto* norm = plan.ops[i].as<PlannedNorm>();
    if (norm == nullptr) continue;
    // The norm before attention keeps its scales for the shared one; the final norm does not.
    EXPECT_EQ(norm->keeps_scales, plan.ops[i].layer != kNoLayer);
  }
  // Not if other rows are normed, because some were picked in between.
  EXPECT_EQ(shared_norms(planned_model("llama")->plan(caps, step_of(2, 4))), 2u);
  // Not if the first product's result is normed before it is added.
  const StepPlan gemma = planned_model("gemma2")->plan(caps, step_of(8, 1));
  EXPECT_EQ(shared_norms(gemma), 0u);
  for (const PlannedOp& op : gemma.ops)
    if (const auto* norm = op.as<PlannedNorm>()) {
      EXPECT_FALSE(norm->keeps_scales);
    }
}

// With few rows neither a norm nor a sum of experts is left between attention and the next layer.
TEST(Fuse, RoutersAndExpertsOfFewRowsNormTheirRows) {
  MadeModelInfo info = model_of("qwen3moe");
  info.experts = 64;
  info.mlp_width = 512;
  info.format = [](const std::string& tensor) {
    const bool router = tensor.find("ffn_gate_inp") != std::string::npos;
    return router ? WeightFormat::kF32 : WeightFormat::kQ4K;
  };
  const auto model = PlannedModel::create(info);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto normed_experts = [](const StepPlan& plan) {
    return std::ranges::count_if(plan.ops, [](const PlannedOp& op) {
      const auto* experts = op.as<PlannedExperts>();
      return experts != nullptr && experts->norm && !experts->parts;
    });
  };
  const StepPlan one = (*model)->plan(profile("h200"), step_of(1, 1));
  EXPECT_EQ(normed_experts(one), 3);
  EXPECT_EQ(count_of<PlannedNorm>(one), 0u);
  const StepPlan eight = (*model)->plan(profile("h200"), step_of(8, 1));
  EXPECT_EQ(normed_experts(eight), 3);
  EXPECT_EQ(count_of<PlannedNorm>(eight), 3u + 1);  // before attention, and the final one
  // Grouped experts read rows that were normed before.
  const StepPlan many = (*model)->plan(profile("h200"), step_of(64, 1));
  EXPECT_EQ(normed_experts(many), 0);
  EXPECT_EQ(count_of<PlannedNorm>(many), 2u * 3 + 1);
}

TEST(Fuse, ValuesAreF16OnlyIfAllReadersAgree) {
  const auto model = planned_model("llama");
  const StepBucket bucket = step_of(1, 64);
  WeightShapes weights = model->model().shapes;
  std::vector<Op> ops(3);
  ops[0].what = NormOp{.weight = {WeightRole::kAttentionNorm, 0}, .width = 1024};
  ops[1].what = ProductOp{.y = Value::kQkv, .weight = {WeightRole::kQkv, 0}};
  ops[2].what = ProductOp{.y = Value::kGateUp, .weight = {WeightRole::kGateUp, 0}};
  for (Op& op : ops) op.rows = bucket.rows;
  const DeviceCaps caps = profile("h200");
  const auto form_of = [&] {
    const StepPlan plan = fuse(
        {.caps = caps,
         .weights = weights,
         .bucket = bucket,
         .attention =
             {.heads = 8,
              .kv_heads = 4,
              .head_size = 128,
              .bucket = {.rows = 64, .sequences = 1, .sequence_rows = 64, .sequence_tokens = 191}},
         .windows = {},
         .matmul_scratch_bytes = 1u << 20},
        ops);
    return plan.ops.front().as<PlannedNorm>()->shape.form;
  };
  EXPECT_EQ(form_of(), RowForm::kHalves);
  weights.set({WeightRole::kGateUp, 0}, {{WeightFormat::kF32, 8192, 1024}});
  EXPECT_EQ(form_of(), RowForm::kFloats);
}

TEST(Fuse, AnAddThatNoNormDoesCannotBeRecorded) {
  StepPlan plan;
  plan.ops.push_back({.part = step_part::kNorm, .layer = 0, .rows = 1, .what = PlannedAdd{}});
  const auto layers = describe(plan);
  ASSERT_FALSE(layers.ok());
  EXPECT_EQ(layers.error().message,
            "nothing adds projected to hidden: the next op must be a norm of the sum");
}

TEST(DeviceProfiles, AnUnknownNameIsAnswered) {
  EXPECT_TRUE(find_device_profile("h200").ok());
  const auto unknown = find_device_profile("h300");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(
      unknown.error().message,
      "there is no device profile 'h300'; there are h200, rtx-4090, rdna3, rdna2, arc, apple, "
      "llvmpipe");
}

}  // namespace
}  // namespace hearth::testing
