// Weights that go from memory straight into fragments. If the device's lanes do not hold such
// fragments, the emulated kernel runs, which loads and stores the same.
#include "params/matmul_direct.h"

#include "tests/support/matmul_fragments.h"

namespace hearth::testing {
namespace {

class MatmulDirectTest : public FragmentsFixture {
 protected:
  // A product in tiles of two subgroups with `part_outputs` outputs each, which lavapipe compiles
  // in seconds, with `buffers` steps of x in shared memory and `splits` splits of k.
  MatmulPlan direct_plan(const MatmulShape& shape, uint32_t part_outputs, uint32_t buffers,
                         uint32_t splits) {
    constexpr uint32_t kSubgroups = 2;
    const FragmentsTile tile{divide_up(shape.rows, 16) * 16, kSubgroups * part_outputs, splits};
    MatmulPlan plan =
        fragments_plan("matmul_direct", shape, tile,
                       params::MatmulDirectConstants{.kWorkgroupSize = kSubgroups * kLanes,
                                                     .kTileRows = tile.rows,
                                                     .kTileOutputs = tile.outputs,
                                                     .kBuffers = buffers,
                                                     .kSplits = splits,
                                                     .kSubgroupOutputs = part_outputs,
                                                     .kSubgroups = kSubgroups});
    plan.can_gate = true;
    return plan;
  }
};

// Ragged in rows and outputs: unequal splits of k with two steps of x in shared memory, and several
// fragments of rows with one.
TEST_F(MatmulDirectTest, RaggedProducts) {
  const MatmulShape nibbles{
      .format = WeightFormat::kQ4K, .rows = 13, .inputs = 1792, .outputs = 70};
  check_plan(direct_plan(nibbles, 8, 2, 3), nibbles);
  const MatmulShape halves{.format = WeightFormat::kF16, .rows = 30, .inputs = 384, .outputs = 70};
  check_plan(direct_plan(halves, 8, 1, 1), halves);
}

// Gates and ups in one product.
TEST_F(MatmulDirectTest, GatesAndUps) {
  const MatmulShape shape{.format = WeightFormat::kQ4K, .rows = 11, .inputs = 256, .outputs = 152};
  check_gates(direct_plan(shape, 16, 2, 1), shape);
}

}  // namespace
}  // namespace hearth::testing
