// A few rows of x that stay in registers while weights stream by. If the device's lanes do not hold
// such fragments, the emulated kernel runs, which loads and stores the same.
#include "params/matmul_team.h"

#include "tests/support/matmul_fragments.h"

namespace hearth::testing {
namespace {

class MatmulTeamTest : public FragmentsFixture {
 protected:
  // A product with `subgroups` subgroups per workgroup, `rounds` rounds and `splits` splits of k.
  MatmulPlan team_plan(const MatmulShape& shape, uint32_t subgroups, uint32_t rounds,
                       uint32_t splits) {
    const uint32_t columns = divide_up(shape.rows, 8);
    const FragmentsTile tile{columns * 8, rounds * 16, splits};
    MatmulPlan plan =
        fragments_plan("matmul_team", shape, tile,
                       params::MatmulTeamConstants{.kWorkgroupSize = subgroups * kLanes,
                                                   .kInputs = shape.inputs,
                                                   .kSplits = splits,
                                                   .kSubgroups = subgroups,
                                                   .kRounds = rounds,
                                                   .kColumns = columns});
    if (splits == 1) {
      plan.can_gate = true;
      plan.can_share_norm = true;
    }
    return plan;
  }

  // y = residual + first * x, whose norm goes through gates: the first product starts the norm, the
  // second finishes it. `grown`: how much larger rows are than those that the guess was made for.
  void check_norm(const MatmulPlan& first_plan, const MatmulShape& first,
                  const MatmulPlan& second_plan, const MatmulShape& second, float grown) {
    const Weights first_weights = random_weights(first.format, first.outputs, first.inputs);
    const Weights second_weights = random_weights(second.format, second.outputs, second.inputs);
    const std::vector<float> x = random_floats(size_t{first.rows} * first.inputs, 3);
    const std::vector<float> norm_weight = random_floats(first.outputs, 5);
    std::vector<float> sum = random_floats(size_t{first.rows} * first.outputs, 4);
    const Buffer y = filled(sum);
    const std::vector<double> product =
        reference_matmul(first_weights.values, x, first.rows, first.inputs, first.outputs);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<float>(product[i]);

    // A different guess for each row; the first product has to fill in the squares.
    const uint32_t groups = first_plan.multiply.groups.y;
    std::vector<float> state(norm_state_bytes(groups) / 4, std::numeric_limits<float>::quiet_NaN());
    for (uint32_t row = 0; row < first.rows; ++row)
      state[row] = static_cast<float>(1 + row) * grown;
    const Buffer state_buffer = filled(state);
    const Buffer rows = poisoned(row_form_bytes(RowForm::kHalves, first.rows, first.outputs) + 64);
    const Buffer result = poisoned(uint64_t{second.rows} * second.outputs / 2 * 4 + 64);
    const Buffer first_weight = filled(first_weights.device), x_buffer = filled(x);
    const Buffer second_weight = filled(second_weights.device), norm = filled(norm_weight);
    const Buffer scratch = poisoned(first_plan.scratch_bytes + second_plan.scratch_bytes);
    const NormBetween between{.weight = norm.all(),
                              .rows = rows.slice(0, rows.bytes() - 64),
                              .state = state_buffer.all(),
                              .groups = groups,
                              .epsilon = 1e-2f};
    run([&](CommandRecorder& recorder) -> Status {
      HEARTH_TRY(record_matmul(recorder, pipelines(), first_plan,
                               {.weight = first_weight.all(),
                                .x = x_buffer.all(),
                                .y = y.all(),
                                .residual = y.all(),
                                .scratch = scratch.all(),
                                .norm_after = between,
                                .shape = first}));
      return record_matmul(recorder, pipelines(), second_plan,
                           {.weight = second_weight.all(),
                            .x = between.rows,
                            .y = result.slice(0, result.bytes() - 64),
                            .scratch = scratch.all(),
                            .prepared = between.rows,
                            .norm_before = between,
                            .gate = MlpActivation::kSilu,
                            .shape = second});
    });
    EXPECT_LT(nmse(read<float>(y), std::vector<double>(sum.begin(), sum.end())), kHalfLimit);
    const std::vector<double> normed =
        reference_rms_norm(sum, norm_weight, first.rows, first.outputs, double{between.epsilon});
    const std::vector<double> wanted = reference_gated(
        reference_matmul(second_weights.values, std::vector<float>(normed.begin(), normed.end()),
                         second.rows, second.inputs, second.outputs),
        second.rows, second.outputs, MlpActivation::kSilu);
    // Two products, and the gates of the second.
    EXPECT_LT(nmse(up_to(wanted.size(), read<float>(result)), wanted), 4 * kHalfLimit) << grown;
    up_to(sum.size(), read_halves(read<uint32_t>(rows)));
  }

  // The first `count` values; checks that the rest is unchanged.
  static std::vector<float> up_to(size_t count, std::vector<float> values) {
    for (size_t i = count; i < values.size(); ++i)
      EXPECT_TRUE(std::isnan(values[i])) << "written past the end";
    values.resize(count);
    return values;
  }
};

// Ragged in rows, outputs and rounds, with one column and two; splits of k of one step and of two,
// the last ones past the end.
TEST_F(MatmulTeamTest, RaggedProducts) {
  const MatmulShape split{.format = WeightFormat::kQ4K, .rows = 5, .inputs = 1280, .outputs = 70};
  check_plan(team_plan(split, 3, 2, 2), split);
  const MatmulShape halves{.format = WeightFormat::kF16, .rows = 8, .inputs = 384, .outputs = 75};
  check_plan(team_plan(halves, 4, 3, 1), halves);
  const MatmulShape columns{.format = WeightFormat::kQ4K, .rows = 13, .inputs = 512, .outputs = 90};
  check_plan(team_plan(columns, 4, 2, 1), columns);
}

// Rows that end within a block of 128 inputs.
TEST_F(MatmulTeamTest, RowsOfAnyNumberOfPieces) {
  for (const uint32_t inputs : {352u, 416u}) {
    const MatmulShape shape{
        .format = WeightFormat::kF16, .rows = 6, .inputs = inputs, .outputs = 40};
    check_plan(team_plan(shape, 2, 2, 1), shape);
    check_plan(team_plan(shape, 4, 1, 1), shape);
  }
}

// More rounds than subgroups to store them, each with a residual.
TEST_F(MatmulTeamTest, AddsResidualsInEveryRound) {
  const MatmulShape shape{.format = WeightFormat::kF16, .rows = 3, .inputs = 512, .outputs = 90};
  check_sum(team_plan(shape, 4, 6, 1), shape);
}

// Gates and ups in one product, with f32 and f16 results.
TEST_F(MatmulTeamTest, GatesAndUps) {
  const MatmulShape shape{.format = WeightFormat::kQ4K, .rows = 7, .inputs = 256, .outputs = 152};
  check_gates(team_plan(shape, 2, 2, 1), shape);
  const MatmulShape columns{
      .format = WeightFormat::kF16, .rows = 16, .inputs = 256, .outputs = 152};
  check_gates(team_plan(columns, 4, 3, 1), columns, MlpActivation::kGeluTanh, true);
}

// A norm split between two products, in rounds that end past the outputs, with one column and two,
// and with good and bad guesses.
TEST_F(MatmulTeamTest, NormSplitBetweenTwoProducts) {
  const MatmulShape first{.format = WeightFormat::kF16, .rows = 5, .inputs = 384, .outputs = 256};
  const MatmulShape second{.format = WeightFormat::kF16, .rows = 5, .inputs = 256, .outputs = 152};
  for (const float grown : {1.0f, 300.0f})
    check_norm(team_plan(first, 4, 3, 1), first, team_plan(second, 2, 2, 1), second, grown);
  const MatmulShape wide{.format = WeightFormat::kQ4K, .rows = 13, .inputs = 512, .outputs = 256};
  const MatmulShape gates{.format = WeightFormat::kQ4K, .rows = 13, .inputs = 256, .outputs = 80};
  check_norm(team_plan(wide, 4, 5, 1), wide, team_plan(gates, 4, 1, 1), gates, 1.0f);
  // With more workgroups than a subgroup has lanes.
  const MatmulShape many{.format = WeightFormat::kF16, .rows = 2, .inputs = 128, .outputs = 640};
  const MatmulShape after{.format = WeightFormat::kF16, .rows = 2, .inputs = 640, .outputs = 48};
  check_norm(team_plan(many, 2, 1, 1), many, team_plan(after, 3, 1, 1), after, 1.0f);
}

// For a plan that does not support it, without prescaled rows, or with too little room for the
// norm's state.
TEST_F(MatmulTeamTest, UnsupportedSplitNormsAreRefused) {
  const MatmulShape shape{.format = WeightFormat::kF16, .rows = 2, .inputs = 128, .outputs = 16};
  const MatmulPlan plan = team_plan(shape, 2, 1, 1);
  MatmulPlan without = plan;
  without.can_share_norm = false;
  const Buffer any = poisoned(16384);
  const NormBetween norm{.weight = any.all(), .rows = any.all(), .state = any.all(), .groups = 1};
  NormBetween small = norm;
  small.state = any.slice(0, norm_state_bytes(1) - 4);
  const Matmul op{
      .weight = any.all(), .x = any.all(), .y = any.all(), .scratch = any.all(), .shape = shape};
  const auto refused = [&](const MatmulPlan& by, std::optional<NormBetween> after,
                           std::optional<NormBetween> before) {
    Matmul with = op;
    with.norm_after = after;
    with.norm_before = before;
    auto recorder = CommandRecorder::begin(device());
    const Status status = record_matmul(*recorder, pipelines(), by, with);
    EXPECT_TRUE(recorder->finish().ok());
    return !status.ok() && status.error().kind == ErrorKind::kInvalid;
  };
  EXPECT_FALSE(refused(plan, norm, {}));
  EXPECT_TRUE(refused(without, norm, {}));
  EXPECT_TRUE(refused(plan, small, {}));
  EXPECT_TRUE(refused(plan, norm, norm));
  EXPECT_TRUE(refused(plan, {}, norm)) << "rows without prescaled values";
}

}  // namespace
}  // namespace hearth::testing
