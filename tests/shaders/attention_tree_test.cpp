// Attention in steps whose sequences end with trees of proposed tokens.
#include <random>

#include <fmt/format.h>

#include "tests/support/attention.h"

namespace hearth::testing {
namespace {

constexpr double kTreeLimit = 1e-6,
                 kTreeHalfLimit = 1e-5;  // NMSE; the latter with prompts on matrix units

std::vector<uint32_t> random_tree(uint32_t rows, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<uint32_t> parents = {kTreeRoot};
  while (parents.size() < rows) {
    const auto size = static_cast<uint32_t>(parents.size());
    const uint32_t parent = std::uniform_int_distribution<uint32_t>(0, size)(generator);
    parents.push_back(parent == size ? kTreeRoot : parent);
  }
  return parents;
}

class AttentionTreeTest : public AttentionGpuTest {
 protected:
  // This device, a GPU with its subgroup size, and the latter with matrix units if it has them.
  std::vector<DeviceCaps> tiers() {
    DeviceCaps gpu = device().caps();
    gpu.type = DeviceType::kDiscrete;
    DeviceCaps plain = gpu;
    plain.features.coopmat = plain.features.lane_fragments = false;
    plain.coopmat_shapes.clear();
    std::vector<DeviceCaps> all{device().caps(), plain};
    if (gpu.features.coopmat && device().caps().type == DeviceType::kCpu) all.push_back(gpu);
    return all;
  }

  AttentionPlan choose(const DeviceCaps& caps, const AttentionCase& test,
                       bool deterministic = false) {
    AttentionPlan plan = choose_attention(caps, shape_of(test), deterministic);
    // Drivers of CPUs take long to compile many keys per tile.
    if (device().caps().type == DeviceType::kCpu && plan.many)
      plan.many->pipeline.constants.set("kKeys", 2 * params::kTokensPerBlock);
    return plan;
  }

  // With splits of one block.
  static AttentionPlan split_most(const AttentionCase& test, AttentionPlan plan) {
    plan.tuning.split_keys = params::kTokensPerBlock;
    plan.tuning.wanted_items = 7;
    plan.capacity = attention_capacity(plan.tuning, shape_of(test).bucket);
    plan.few.groups.x = plan.capacity.few;
    if (plan.many) plan.many->groups.x = plan.capacity.many;
    return plan;
  }

  static AttentionCase small(std::vector<AttentionSequence> sequences,
                             KvFormat kv = KvFormat::kF16) {
    return {
        .kv = kv, .heads = 4, .kv_heads = 2, .head_size = 16, .sequences = std::move(sequences)};
  }

  void check(const AttentionCase& test) {
    const AttentionData data = make_attention_data(test, 5 + test.window);
    const std::vector<double> wanted = reference_attention(test, data);
    for (const DeviceCaps& caps : tiers()) {
      const AttentionPlan plan = choose(caps, test);
      // Slow to compile on a CPU, and the tree is in the other list.
      if (plan.many && test.kv == KvFormat::kQ8_0 && device().caps().type == DeviceType::kCpu)
        continue;
      for (const AttentionPlan& each : {plan, split_most(test, plan)})
        EXPECT_LT(nmse(attend(test, data, each), wanted), plan.many ? kTreeHalfLimit : kTreeLimit)
            << fmt::format("{}{}, window {}, cap {}, first tree of {} after {}",
                           plan.few.pipeline.kernel, plan.many ? " and matrix units" : "",
                           test.window, test.soft_cap, test.sequences[0].parents.size(),
                           test.sequences[0].before);
    }
  }
};

// Beginning anywhere in a block and crossing blocks; of every size; with rows before the tree, and
// with none; among plain sequences and prompts.
TEST_F(AttentionTreeTest, RowsSeeTheirPathAndWhatIsBeforeTheTree) {
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0})
    check(small({{36, 13, random_tree(12, 1)},
                 {0, 33, random_tree(32, 2)},
                 {99, 1},
                 {47, 20, random_tree(20, 3)},
                 {3, 21},
                 {111, 2, {kTreeRoot, kTreeRoot}},
                 {15, 6, {kTreeRoot, 0, 0, 1}}},
                kv));
  // Wide: every row is a child of the token before the tree.
  check(small({{30, 32, std::vector<uint32_t>(32, kTreeRoot)}, {5, 1}}));
}

// A window may end before the tree, in it, or within a path.
TEST_F(AttentionTreeTest, WindowsFollowThePath) {
  for (const uint32_t window : {1u, 2u, 5u, 16u, 17u, 50u, 1000u}) {
    AttentionCase test = small({{70, 13, random_tree(12, 4)},
                                {0, 32, random_tree(32, 5)},
                                {60, 33, {}},
                                {33, 5, {kTreeRoot, 0, 1, 0, 3}}});
    test.window = window;
    check(test);
  }
}

TEST_F(AttentionTreeTest, SoftCap) {
  AttentionCase test = small({{40, 9, random_tree(8, 6)}});
  test.soft_cap = 1.0f;
  check(test);
}

TEST_F(AttentionTreeTest, Sinks) {
  AttentionCase test = small({{40, 9, random_tree(8, 6)}, {12, 1}});
  test.sinks = {1.0f, -2.0f, 4.0f, 0.0f};
  check(test);
}

// As --deterministic promises for ordinary rows. A StepBatch makes no tree of a chain; if it did,
// the bits would be the same.
TEST_F(AttentionTreeTest, AChainHasTheSameBitsAsOrdinaryRows) {
  for (const DeviceCaps& caps : tiers()) {
    for (const uint32_t window : {0u, 6u, 40u}) {
      AttentionCase test = small({{37, 12}, {100, 5}, {64, 1}});
      test.window = window;
      const AttentionData data = make_attention_data(test, 8);
      const auto plan_for = [&](bool trees) {
        AttentionShape shape = shape_of(test);
        shape.bucket.trees = trees;
        AttentionPlan plan = choose_attention(caps, shape, true);
        plan.tuning.split_keys = 32;
        plan.capacity = attention_capacity(plan.tuning, shape.bucket);
        plan.few.groups.x = plan.capacity.few;
        return plan;
      };
      forced_ancestors.clear();
      const std::vector<float> ordinary = attend(test, data, plan_for(false));
      // The last ten rows of the first sequence, and all of the second.
      forced_ancestors.assign(test.rows(), 0);
      for (uint32_t i = 0; i < 10; ++i) forced_ancestors[2 + i] = (2u << i) - 1;
      for (uint32_t i = 0; i < 5; ++i) forced_ancestors[12 + i] = (2u << i) - 1;
      const std::vector<float> chain = attend(test, data, plan_for(true));
      ASSERT_EQ(ordinary.size(), chain.size());
      EXPECT_EQ(std::memcmp(ordinary.data(), chain.data(), chain.size() * 4), 0)
          << "window " << window << ", " << caps.subgroup_size << " lanes";
    }
  }
}

}  // namespace
}  // namespace hearth::testing
