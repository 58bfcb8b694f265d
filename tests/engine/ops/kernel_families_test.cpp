// The lists of kernel families: every family is the first choice somewhere, plans kernels of its
// own name, and keeps within the limits of the device. And what ops cost, whichever kernel runs
// them.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "engine/ops/attention/family.h"
#include "engine/ops/experts/family.h"
#include "engine/ops/kernel_family.h"
#include "engine/ops/matmul/family.h"
#include "engine/ops/matmul/tile_family.h"
#include "engine/program/device_profiles.h"

namespace hearth::testing {
namespace {

void expect_fits(const DeviceCaps& caps, const KernelPlan& kernel) {
  EXPECT_LE(kernel.pipeline.constants.workgroup_size(), caps.limits.max_group_invocations)
      << kernel.pipeline.kernel;
  EXPECT_TRUE(kernel.pipeline.constants.unknown_name().empty())
      << kernel.pipeline.kernel << " has no " << kernel.pipeline.constants.unknown_name();
}

template <class Families>
std::set<std::string_view> names_of(const Families& families) {
  std::set<std::string_view> names;
  for (const auto* family : families) names.insert(family->name);
  return names;
}

TEST(KernelFamilies, OfMatmul) {
  std::set<std::string_view> chosen;
  for (const DeviceProfile& device : device_profiles())
    for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kQ4K})
      for (const uint32_t rows : {1u, 2u, 7u, 16u, 64u, 512u})
        for (const bool deterministic : {false, true}) {
          const MatmulShape shape{.format = format, .rows = rows, .inputs = 4096, .outputs = 4096};
          const MatmulRequest request{device.caps, shape, deterministic};
          const MatmulFamily* family = first_supporting(matmul_families(), request);
          ASSERT_NE(family, nullptr) << device.name;
          chosen.insert(family->name);
          const MatmulPlan plan = family->plan(request);
          EXPECT_TRUE(plan.multiply.pipeline.kernel.starts_with(family->name));
          expect_fits(device.caps, plan.multiply);
        }
  EXPECT_EQ(chosen, names_of(matmul_families()));
}

TEST(KernelFamilies, OfAttention) {
  std::set<std::string_view> few, many;
  for (const DeviceProfile& device : device_profiles())
    for (const uint32_t head_size : {64u, 80u, 128u, 256u})
      for (const uint32_t sequence_rows : {1u, 64u}) {
        const AttentionShape shape{.heads = 32,
                                   .kv_heads = 8,
                                   .head_size = head_size,
                                   .bucket = {.rows = 8 * sequence_rows,
                                              .sequences = 8,
                                              .sequence_rows = sequence_rows,
                                              .sequence_tokens = 2047}};
        const AttentionPlan plan = choose_attention(device.caps, shape);
        const auto note = [&](const KernelPlan& kernel, const auto& families, auto& names) {
          expect_fits(device.caps, kernel);
          for (const AttentionFamily* family : families)
            if (kernel.pipeline.kernel.starts_with(family->name)) names.insert(family->name);
        };
        note(plan.few, few_attention_families(), few);
        if (plan.many) note(*plan.many, many_attention_families(), many);
      }
  EXPECT_EQ(few, names_of(few_attention_families()));
  EXPECT_EQ(many, names_of(many_attention_families()));
}

TEST(KernelFamilies, OfExperts) {
  std::set<const ExpertsFamily*> chosen;
  for (const DeviceProfile& device : device_profiles())
    for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kMxfp4})
      for (const uint32_t rows : {1u, 4u, 64u, 512u}) {
        const ExpertsShape shape{.gate_up = format,
                                 .down = format,
                                 .rows = rows,
                                 .experts = 32,
                                 .used = 4,
                                 .width = 2880,
                                 .mlp_width = 2880};
        const ExpertsRequest request{device.caps, shape};
        const ExpertsFamily* family = first_supporting(experts_families(), request);
        ASSERT_NE(family, nullptr) << device.name;
        chosen.insert(family);
        const ExpertsPlan plan = choose_experts(device.caps, shape);
        for (const ExpertProduct* product : {&plan.gate_up, &plan.down}) {
          EXPECT_TRUE(product->kernel.pipeline.kernel.starts_with(family->name));
          expect_fits(device.caps, product->kernel);
        }
      }
  EXPECT_EQ(chosen.size(), experts_families().size());
}

TEST(KernelFamilies, OfTilesNeedWhatTheirFragmentsNeed) {
  const DeviceCaps h200 = find_device_profile("h200").value();
  const MatmulShape shape{
      .format = WeightFormat::kF16, .rows = 64, .inputs = 4096, .outputs = 4096};
  for (const TileKernel kernel :
       {TileKernel::kScalar, TileKernel::kCoopmat, TileKernel::kDirect, TileKernel::kWide}) {
    const Tile tile{.rows = 64,
                    .outputs = 128,
                    .inputs = 32,
                    .part_rows = 32,
                    .part_outputs = 32,
                    .kernel = kernel};
    const TileFamily& family = tile_family(kernel);
    EXPECT_TRUE(family.supports({h200, shape, tile})) << family.name;
    EXPECT_TRUE(family.plan({h200, shape, tile}).kernel.starts_with(family.name));
    DeviceCaps less = h200;
    less.features.lane_fragments = false;
    EXPECT_EQ(family.supports({less, shape, tile}), !lanes_make_fragments(tile)) << family.name;
    less.features.coopmat = false;
    EXPECT_EQ(family.supports({less, shape, tile}), kernel == TileKernel::kScalar) << family.name;
    less = h200;
    less.limits.max_shared_bytes = 1024;
    EXPECT_FALSE(family.supports({less, shape, tile})) << family.name;
  }
}

TEST(OpCost, OfProductsAndExperts) {
  const OpCost product =
      matmul_cost({.format = WeightFormat::kQ8_0, .rows = 3, .inputs = 4096, .outputs = 1024});
  EXPECT_EQ(product.memory_bytes, 4096.0 * 1024 * 34 / 32);
  EXPECT_EQ(product.activation_bytes, 4.0 * 3 * (4096 + 1024));
  EXPECT_EQ(product.operations, 2.0 * 3 * 4096 * 1024);
  ExpertsShape experts{.gate_up = WeightFormat::kF32,
                       .down = WeightFormat::kF32,
                       .rows = 1,
                       .experts = 8,
                       .used = 2,
                       .width = 64,
                       .mlp_width = 32};
  EXPECT_DOUBLE_EQ(experts_cost(experts).memory_bytes, 2 * 3 * 4.0 * 64 * 32);
  experts.rows = 2;  // a fourth of the pairs has an expert that the other row has, too
  EXPECT_DOUBLE_EQ(touched_experts(experts), 3.5);
}

// A window hides the beginning; rows of one sequence read its keys once.
TEST(OpCost, OfAttention) {
  const AttentionShape shape{.heads = 4, .kv_heads = 2, .head_size = 32};
  const params::StepSequence one[] = {{.first_row = 0, .rows = 1, .first_position = 99}};
  const params::StepSequence prompt[] = {{.first_row = 0, .rows = 10, .first_position = 0}};
  const double token = 2 * 2 * 32 * 2, width = 4 * 32;
  EXPECT_EQ(attention_cost(shape, one, 0).memory_bytes, 100 * token);
  EXPECT_EQ(attention_cost(shape, one, 0).operations, 4 * 100 * width);
  EXPECT_EQ(attention_cost(shape, one, 16).memory_bytes, 16 * token);
  EXPECT_EQ(attention_cost(shape, prompt, 0).memory_bytes, 10 * token);
  EXPECT_EQ(attention_cost(shape, prompt, 0).operations, 4 * 55 * width);
  EXPECT_EQ(attention_cost(shape, prompt, 0).activation_bytes, 8 * 10 * width);
}

}  // namespace
}  // namespace hearth::testing
