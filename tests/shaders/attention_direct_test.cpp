// Attention of single tokens, with keys and values loaded straight into fragments.
#include "tests/support/attention.h"

namespace hearth::testing {
namespace {

constexpr double kDirectLimit = 1e-5;  // NMSE; queries and weights are f16

// A CPU driver takes seconds to compile each variant, so options are combined in pairs there.
class AttentionDirectTest : public AttentionGpuTest {
 protected:
  bool real() { return device().caps().features.lane_fragments; }

  AttentionPlan direct_plan(const AttentionCase& test, uint32_t split_keys, bool overlap,
                            uint32_t subgroups) {
    const AttentionShape shape = shape_of(test);
    AttentionPlan plan{.few = direct_kernel(shape, overlap, subgroups),
                       .tuning = {.split_keys = split_keys, .wanted_items = 1000}};
    plan.capacity = attention_capacity(plan.tuning, shape.bucket);
    plan.few.groups.x = plan.capacity.few;
    plan.writes_halves = true;
    return plan;
  }

  void check(const AttentionCase& test, uint32_t split_keys, bool overlap,
             RowForm form = RowForm::kFloats, uint32_t subgroups = 2) {
    const AttentionData data = make_attention_data(test, test.head_size + test.window);
    const AttentionPlan plan = direct_plan(test, split_keys, overlap, subgroups);
    EXPECT_LT(nmse(attend(test, data, plan, form), reference_attention(test, data)), kDirectLimit)
        << plan.few.pipeline.kernel << " window " << test.window << " cap " << test.soft_cap
        << " splits of " << split_keys << (overlap ? ", overlapped, " : ", ") << subgroups
        << " subgroups";
  }
};

// Whole runs, a few keys more, and one key fewer.
const std::vector<AttentionSequence> kSequences = {{36, 1},  {0, 1},  {15, 1}, {16, 1},
                                                   {250, 1}, {31, 1}, {14, 1}};

TEST_F(AttentionDirectTest, LengthsWindowsCapsAndSplits) {
  AttentionCase test{
      .kv = KvFormat::kF16, .heads = 6, .kv_heads = 2, .head_size = 64, .sequences = kSequences};
  check(test, 1024, false);
  check(test, params::kTokensPerBlock, false);
  test.window = 21;
  check(test, 1024, false);
  test.window = 0;
  test.soft_cap = 5.0f;
  check(test, 48, false);
}

// Tokens of a sequence that are computed one by one, after others in the cache and without.
TEST_F(AttentionDirectTest, SeveralTokensOfASequence) {
  AttentionCase test{.kv = KvFormat::kF16,
                     .heads = 6,
                     .kv_heads = 2,
                     .head_size = 64,
                     .sequences = {{36, 5}, {0, 17}, {15, 1}, {250, 3}}};
  check(test, 1024, false);
  check(test, params::kTokensPerBlock, false);
  test.window = 21;
  check(test, 1024, false);
  test.sinks = {-30.0f, 0.0f, 2.0f, 5.0f, 1.0f, -1.0f};
  check(test, 1024, false);
  check(test, params::kTokensPerBlock, false);
}

TEST_F(AttentionDirectTest, Sinks) {
  const AttentionCase test{.kv = KvFormat::kF16,
                           .heads = 4,
                           .kv_heads = 2,
                           .head_size = 32,
                           .sequences = kSequences,
                           .sinks = {-30.0f, 0.0f, 2.0f, 5.0f}};
  check(test, 1024, false);
  check(test, params::kTokensPerBlock, false);
}

// One subgroup, as used for many sequences. Emulated, it spans several subgroups of the device,
// which cannot count splits without a barrier.
TEST_F(AttentionDirectTest, OneSubgroupWithTwoRunsInFlight) {
  const AttentionCase test{
      .kv = KvFormat::kF16, .heads = 8, .kv_heads = 1, .head_size = 128, .sequences = kSequences};
  check(test, 1024, true, RowForm::kHalves, 1);
  if (!real()) return;
  check(test, 48, true, RowForm::kFloats, 1);
  check(test, 1024, true, RowForm::kFloats, 8);
}

TEST_F(AttentionDirectTest, Q8Cache) {
  AttentionCase test{
      .kv = KvFormat::kQ8_0, .heads = 2, .kv_heads = 1, .head_size = 64, .sequences = kSequences};
  check(test, 128, false);
  test.head_size = 128;
  if (real()) check(test, 128, true);
}

}  // namespace
}  // namespace hearth::testing
