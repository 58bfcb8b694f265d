// Few rows of x that stay in registers while weights go by. Where a device has no fragments that
// lanes can make, the kernel runs with a model of them: what it loads, and where it puts it, is the
// same.
#include "tests/support/matmul_fragments.h"

namespace hearth::testing {
namespace {

class MatmulTeamTest : public FragmentsFixture {
 protected:
  // The product in groups of so many subgroups and rounds, with k in `splits` shares.
  MatmulPlan team_plan(const MatmulShape& shape, uint32_t subgroups, uint32_t rounds,
                       uint32_t splits) {
    const uint32_t columns = divide_up(shape.rows, 8);
    const FragmentsTile tile{columns * 8, rounds * 16, splits};
    MatmulPlan plan = fragments_plan(
        "matmul_team", shape, tile,
        {subgroups * kLanes, 0, shape.inputs, splits, subgroups, rounds, columns, 0, 0});
    if (splits == 1) plan.gate_constant = 7;
    return plan;
  }
};

// Ragged in rows, outputs and rounds, in one column and in two; shares of k of one block and of
// two, the last ones past the end.
TEST_F(MatmulTeamTest, Products) {
  const MatmulShape split{.format = WeightFormat::kQ4K, .rows = 5, .inputs = 1280, .outputs = 70};
  check_plan(team_plan(split, 3, 2, 2), split);
  const MatmulShape halves{.format = WeightFormat::kF16, .rows = 8, .inputs = 384, .outputs = 75};
  check_plan(team_plan(halves, 4, 3, 1), halves);
  const MatmulShape columns{.format = WeightFormat::kQ4K, .rows = 13, .inputs = 512, .outputs = 90};
  check_plan(team_plan(columns, 4, 2, 1), columns);
}

// More rounds than subgroups to store them, each with its residual.
TEST_F(MatmulTeamTest, Residuals) {
  const MatmulShape shape{.format = WeightFormat::kF16, .rows = 3, .inputs = 512, .outputs = 90};
  check_sum(team_plan(shape, 4, 6, 1), shape);
}

// Gates and ups in one product, whose results may be halves.
TEST_F(MatmulTeamTest, GatesAndUps) {
  const MatmulShape shape{.format = WeightFormat::kQ4K, .rows = 7, .inputs = 256, .outputs = 152};
  check_gates(team_plan(shape, 2, 2, 1), shape);
  const MatmulShape columns{
      .format = WeightFormat::kF16, .rows = 16, .inputs = 256, .outputs = 152};
  check_gates(team_plan(columns, 4, 3, 1), columns, MlpActivation::kGeluTanh, true);
}

}  // namespace
}  // namespace hearth::testing
