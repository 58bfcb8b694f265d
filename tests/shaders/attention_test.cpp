#include "engine/ops/attention.h"

#include <fmt/format.h>

#include "tests/support/attention.h"

namespace hearth::testing {
namespace {

constexpr double kLimit = 1e-6;      // NMSE
constexpr double kTileLimit = 1e-5;  // queries and weights are f16 in the cooperative-matrix kernel

class AttentionTest : public AttentionGpuTest {
 protected:
  // As this device is, and as a GPU would be served with its subgroup size.
  std::vector<DeviceCaps> tiers() {
    DeviceCaps gpu = device().caps();
    gpu.type = DeviceType::kDiscrete;
    DeviceCaps plain = gpu;
    plain.features.coopmat = plain.features.coopmat2 = false;
    plain.coopmat_shapes.clear();
    std::vector<DeviceCaps> all{device().caps(), plain};
    if (gpu.features.coopmat) all.push_back(gpu);
    return all;
  }

  // Kernels made for GPUs take a CPU driver up to minutes to compile, the more the larger the head.
  uint32_t most_head_size(const DeviceCaps& tier) {
    if (device().caps().type != DeviceType::kCpu || tier.type == DeviceType::kCpu)
      return kMaxHeadSize;
    return tier.features.coopmat ? 32 : 80;
  }

  static double limit_of(const AttentionPlan& plan) {
    return plan.many && plan.many->pipeline.kernel.starts_with("attention_tile") ? kTileLimit
                                                                                 : kLimit;
  }

  static std::string describe(const AttentionCase& test, const AttentionPlan& plan) {
    std::string text =
        fmt::format("{}{}: {} heads over {} of {}, window {}, cap {}:", plan.few.pipeline.kernel,
                    plan.many ? " and " + plan.many->pipeline.kernel : "", test.heads,
                    test.kv_heads, test.head_size, test.window, test.soft_cap);
    for (const AttentionSequence& sequence : test.sequences)
      text += fmt::format(" {}+{}", sequence.before, sequence.rows);
    return text;
  }

  void check(const AttentionCase& test, const AttentionPlan& plan,
             RowForm form = RowForm::kFloats) {
    const AttentionData data = make_attention_data(test, test.head_size + test.window);
    EXPECT_LT(nmse(attend(test, data, plan, form), reference_attention(test, data)), limit_of(plan))
        << describe(test, plan);
  }

  // On every tier, as chosen and with splits as small as they get.
  void check(const AttentionCase& test) {
    for (const DeviceCaps& caps : tiers()) {
      if (test.head_size > most_head_size(caps)) continue;
      AttentionPlan plan = choose_attention(caps, shape_of(test));
      check(test, plan);
      check(test, with_tuning(test, plan,
                              {.few_tokens = plan.tuning.few_tokens,
                               .many_tokens = plan.tuning.many_tokens,
                               .split_keys = params::kBlockTokens,
                               .wanted_items = 7}));
    }
  }

  static AttentionPlan with_tuning(const AttentionCase& test, AttentionPlan plan,
                                   const AttentionTuning& tuning) {
    plan.tuning = tuning;
    plan.capacity = attention_capacity(tuning, shape_of(test).bucket);
    plan.few.groups.x = plan.capacity.few;
    if (plan.many) plan.many->groups.x = plan.capacity.many;
    plan.merge.reset();
    if (plan.capacity.merges > 0)
      plan.merge =
          KernelPlan{.pipeline = {.kernel = "attention_merge", .constants = {48, 16, 3, 0}},
                     .groups = {.x = plan.capacity.merges, .y = test.heads}};
    return plan;
  }
};

TEST_F(AttentionTest, HeadSizes) {
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
    for (const uint32_t head_size : {32u, 64u, 80u, 96u, 128u, 256u})
      check({.kv = kv, .head_size = head_size, .sequences = {{36, 1}, {0, 19}, {40, 1}}});
  }
}

TEST_F(AttentionTest, GroupsOfHeads) {
  for (const auto& [heads, kv_heads] :
       {std::pair{1u, 1u}, {3u, 3u}, {6u, 2u}, {8u, 2u}, {8u, 1u}, {14u, 2u}, {12u, 1u}})
    check({.heads = heads,
           .kv_heads = kv_heads,
           .head_size = 32,
           .sequences = {{20, 1}, {17, 9}, {0, 1}}});
}

TEST_F(AttentionTest, SequencesOfManyLengthsInOneBatch) {
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0})
    check({.kv = kv,
           .head_size = 64,
           .sequences = {{0, 1}, {14, 1}, {15, 1}, {16, 1}, {99, 1}, {999, 1}}});
}

TEST_F(AttentionTest, Prompts) {
  for (const uint32_t tokens : {1u, 15u, 16u, 17u, 100u})
    check({.head_size = 32, .sequences = {{0, tokens}, {tokens, 3}, {3, tokens}}});
  check({.heads = 2, .kv_heads = 1, .head_size = 32, .sequences = {{900, 100}}});
}

TEST_F(AttentionTest, Windows) {
  for (const uint32_t window : {1u, 5u, 16u, 17u, 50u, 1000u})
    check({.head_size = 32, .sequences = {{70, 1}, {0, 33}, {100, 40}, {3, 1}}, .window = window});
}

TEST_F(AttentionTest, SoftCap) {
  for (const float cap : {1.0f, 20.0f})
    check({.head_size = 32, .sequences = {{40, 1}, {5, 20}}, .soft_cap = cap});
}

// The next product may want its rows in another form than floats.
TEST_F(AttentionTest, FormsOfTheResult) {
  const AttentionCase cases[] = {{.head_size = 64, .sequences = {{36, 1}, {0, 1}, {700, 1}}},
                                 {.head_size = 32, .sequences = {{36, 1}, {0, 19}, {40, 1}}}};
  for (const AttentionCase& test : cases) {
    for (const DeviceCaps& caps : tiers()) {
      if (test.head_size > most_head_size(caps)) continue;
      const AttentionPlan plan = choose_attention(caps, shape_of(test));
      const AttentionPlan split = with_tuning(test, plan,
                                              {.few_tokens = plan.tuning.few_tokens,
                                               .many_tokens = plan.tuning.many_tokens,
                                               .split_keys = params::kBlockTokens,
                                               .wanted_items = 7});
      for (const RowForm form : {RowForm::kHalves, RowForm::kSplit}) {
        if (!can_write(plan, form)) continue;
        check(test, plan, form);
        check(test, split, form);
      }
    }
  }
}

TEST_F(AttentionTest, AChunkedPromptIsTheWholePrompt) {
  const AttentionCase whole{.head_size = 32, .sequences = {{0, 50}}};
  const AttentionData data = make_attention_data(whole, 1);
  for (const DeviceCaps& caps : tiers()) {
    const AttentionPlan whole_plan = choose_attention(caps, shape_of(whole));
    const std::vector<float> at_once = attend(whole, data, whole_plan);
    const std::vector<double> expected(at_once.begin(), at_once.end());
    for (const uint32_t chunk : {1u, 7u, 16u}) {
      std::vector<float> pieces;
      for (uint32_t begin = 0; begin < 50; begin += chunk) {
        AttentionCase piece = whole;
        piece.sequences = {{begin, std::min(chunk, 50 - begin)}};
        const std::vector<float> rows =
            attend(piece, make_attention_data(piece, 1), choose_attention(caps, shape_of(piece)));
        pieces.insert(pieces.end(), rows.begin(), rows.end());
      }
      EXPECT_LT(nmse(pieces, expected), limit_of(whole_plan)) << "chunks of " << chunk;
    }
  }
}

// What --deterministic rests on: alone, in a batch, or in another chunk, a row is the same bits.
TEST_F(AttentionTest, DeterministicRowsAreTheSameBitsInEveryBatch) {
  for (const DeviceCaps& caps : tiers()) {
    for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
      AttentionCase batch{
          .kv = kv, .head_size = 64, .sequences = {{75, 5}, {0, 30}, {111, 1}}, .window = 60};
      const auto plan_for = [&](const AttentionCase& test) {
        AttentionPlan plan = choose_attention(caps, shape_of(test), true);
        plan.tuning.split_keys = 32;  // so that these short sequences are split
        return with_tuning(test, plan, plan.tuning);
      };
      const std::vector<float> together =
          attend(batch, make_attention_data(batch, 4), plan_for(batch));
      std::vector<float> alone;
      for (uint32_t i = 0; i < batch.sequences.size(); ++i) {
        for (uint32_t row = 0; row < batch.sequences[i].rows; ++row) {
          AttentionCase one = batch;
          one.sequences = {{batch.sequences[i].before + row, 1}};
          const std::vector<float> result =
              attend(one, make_attention_data(one, 4 + i), plan_for(one));
          alone.insert(alone.end(), result.begin(), result.end());
        }
      }
      ASSERT_EQ(together.size(), alone.size());
      EXPECT_EQ(std::memcmp(together.data(), alone.data(), alone.size() * 4), 0)
          << caps.subgroup_size << " lanes, " << kv_format_name(kv);
    }
  }
}

TEST_F(AttentionTest, TilesOfTheRowKernel) {
  const uint32_t subgroup = device().caps().subgroup_size;
  AttentionCase test{.heads = 6, .kv_heads = 2, .head_size = 32, .sequences = {{50, 3}, {90, 1}}};
  DeviceCaps caps = device().caps();
  caps.type = DeviceType::kDiscrete;
  struct RowTile {
    uint32_t subgroups, lanes, run;
  };
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
    test.kv = kv;
    for (const auto& [subgroups, lanes, run] :
         {RowTile{1, 1, 2}, {3, 2, 1}, {1, subgroup, 4}, {3, subgroup, 2}}) {
      AttentionPlan plan = choose_attention(caps, shape_of(test));
      plan.few.pipeline.constants = {
          subgroup * subgroups, subgroup, subgroups, 32, 2, lanes, run, 0};
      plan.many.reset();
      plan.few.groups.y = 2 * 3;  // 2 tokens of 3 heads in parts of 2 rows
      check(test, with_tuning(test, plan, {.few_tokens = 2, .split_keys = 64, .wanted_items = 3}));
    }
  }
}

TEST_F(AttentionTest, ShapesTheKernelsCannotTakeAreRefused) {
  const Buffer any = poisoned(1024);
  for (const AttentionShape& shape :
       {AttentionShape{.heads = 4, .kv_heads = 3, .head_size = 64},
        AttentionShape{.heads = 4, .kv_heads = 0, .head_size = 64},
        AttentionShape{.heads = 4, .kv_heads = 2, .head_size = 72},
        AttentionShape{.heads = 4, .kv_heads = 2, .head_size = 512},
        AttentionShape{.kv = KvFormat::kQ8_0, .heads = 4, .kv_heads = 2, .head_size = 64}}) {
    ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
    const Status status = record_attention(
        recorder, pipelines(), choose_attention(device().caps(), shape),
        {.q = any.all(),
         .result = any.all(),
         .cache = {.keys = any.all(), .values = any.all(), .key_scales = {}, .value_scales = {}},
         .sequences = any.all(),
         .block_tables = any.all(),
         .work = {.few = any.all(), .many = {}, .merges = {}},
         .partials = {},
         .shape = shape});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
    ASSERT_OK(recorder.finish());
  }
}

}  // namespace
}  // namespace hearth::testing
