// Both operands go through shared memory in fragment order. If the device's lanes do not hold such
// fragments, the emulated kernel runs, which loads and stores the same.
#include "params/matmul_wide.h"

#include "tests/support/matmul_fragments.h"

namespace hearth::testing {
namespace {

class MatmulWideTest : public FragmentsFixture {
 protected:
  // A product in tiles of four subgroups, `down` of them along the rows, which lavapipe compiles in
  // seconds.
  MatmulPlan wide_plan(const MatmulShape& shape, uint32_t down, uint32_t part_rows,
                       uint32_t part_outputs, uint32_t splits) {
    constexpr uint32_t kSubgroups = 4;
    const FragmentsTile tile{down * part_rows, kSubgroups / down * part_outputs, splits};
    const bool whole = shape.rows % tile.rows == 0 && shape.outputs % tile.outputs == 0;
    MatmulPlan plan =
        fragments_plan("matmul_wide", shape, tile,
                       params::MatmulWideConstants{.kWorkgroupSize = kSubgroups * kLanes,
                                                   .kTileRows = tile.rows,
                                                   .kTileOutputs = tile.outputs,
                                                   .kSplits = splits,
                                                   .kSubgroupRows = part_rows,
                                                   .kSubgroupOutputs = part_outputs,
                                                   .kSubgroups = kSubgroups,
                                                   .kInputs = whole ? shape.inputs : 0});
    plan.can_gate = true;
    return plan;
  }
};

// Several tiles in both directions, the last of them ragged: with unequal splits of k, and with
// loads that are not a multiple of the workgroup's invocations.
TEST_F(MatmulWideTest, RaggedProducts) {
  const MatmulShape halves{.format = WeightFormat::kF16, .rows = 45, .inputs = 320, .outputs = 70};
  check_plan(wide_plan(halves, 2, 16, 32, 3), halves);
  const MatmulShape nibbles{.format = WeightFormat::kQ4K, .rows = 61, .inputs = 512, .outputs = 70};
  check_plan(wide_plan(nibbles, 1, 48, 16, 1), nibbles);
}

// Gates and ups in one product, in tiles of which all but the first are tail tiles.
TEST_F(MatmulWideTest, GatesAndUps) {
  const MatmulShape shape{.format = WeightFormat::kF16, .rows = 45, .inputs = 320, .outputs = 152};
  MatmulPlan plan = wide_plan(shape, 2, 16, 32, 1);
  split_tail_tiles(plan);
  check_gates(plan, shape);
}

// Every invocation has several loads of x or of weights, at constant offsets if possible, and a row
// of fragments needs several passes through its staging area.
TEST_F(MatmulWideTest, WholeTiles) {
  const MatmulShape halves{.format = WeightFormat::kF16, .rows = 64, .inputs = 192, .outputs = 256};
  check_sum(wide_plan(halves, 2, 16, 64, 1), halves);
  const MatmulShape gates{.format = WeightFormat::kF16, .rows = 64, .inputs = 192, .outputs = 384};
  check_gates(wide_plan(gates, 2, 16, 96, 1), gates, MlpActivation::kSilu, true);
  const MatmulShape rows{.format = WeightFormat::kF16, .rows = 64, .inputs = 192, .outputs = 64};
  check_plan(wide_plan(rows, 2, 32, 16, 1), rows);
}

// The first outputs in large tiles, the rest in smaller ones, of which the last is ragged.
TEST_F(MatmulWideTest, LastOutputsInSmallerTiles) {
  const auto with_rest = [&](const MatmulShape& shape, uint32_t first_output) {
    MatmulShape first = shape, rest = shape;
    first.outputs = first_output;
    rest.outputs = shape.outputs - first_output;
    MatmulPlan plan = wide_plan(first, 2, 16, 64, 1);
    plan.rest = {.multiply = wide_plan(rest, 2, 16, 32, 1).multiply, .first_output = first_output};
    return plan;
  };
  const MatmulShape shape{.format = WeightFormat::kF16, .rows = 64, .inputs = 192, .outputs = 216};
  check_sum(with_rest(shape, 128), shape);
  check_gates(with_rest(shape, 128), shape);
}

}  // namespace
}  // namespace hearth::testing
