#include "engine/ops/attention.h"

#include <fmt/format.h>

#include "params/attention_rows.h"
#include "tests/support/attention.h"

namespace hearth::testing {
namespace {

constexpr double kAttentionLimit = 1e-6;  // NMSE
constexpr double kAttentionHalfLimit =
    1e-5;  // queries and weights are f16 in kernels on matrix units

// A test takes as long as its pipelines take to compile, seconds each; running them costs little.
// So options that do not change the pipeline (lengths, windows, caps, splits) are all tried on the
// small heads that all kernels share, and those that do (heads, formats, forms, tiles) in pairs.
constexpr uint32_t kSmallHead = 16, kOddHead = 80;

class AttentionTest : public AttentionGpuTest {
 protected:
  // This device as it is, and plans for GPUs with its subgroup size: without cooperative matrices,
  // and with them if it has them.
  std::vector<DeviceCaps> tiers() {
    std::vector<DeviceCaps> all{device().caps(), plain_gpu()};
    if (on_cpu() && device().caps().features.coopmat) all.push_back(gpu());
    return all;
  }
  DeviceCaps gpu() {
    DeviceCaps caps = device().caps();
    caps.type = DeviceType::kDiscrete;
    return caps;
  }
  DeviceCaps plain_gpu() {
    DeviceCaps plain = gpu();
    plain.features.coopmat = plain.features.lane_fragments = false;
    plain.coopmat_shapes.clear();
    return plain;
  }
  bool on_cpu() { return device().caps().type == DeviceType::kCpu; }

  // A CPU driver takes up to minutes to compile kernels made for GPUs, longer for larger heads.
  // There the plain kernel gets one odd size in addition to the small one, and the one on matrix
  // units only the odd one.
  bool takes(const DeviceCaps& tier, uint32_t head_size) {
    return !on_cpu() || tier.type == DeviceType::kCpu || head_size == kSmallHead ||
           (head_size == kOddHead && !tier.features.coopmat);
  }

  // A batch with the heads that most tests share for a format.
  static AttentionCase small(std::vector<AttentionSequence> sequences,
                             KvFormat kv = KvFormat::kF16) {
    const bool f16 = kv == KvFormat::kF16;
    return {.kv = kv,
            .heads = f16 ? 4u : 14u,
            .kv_heads = 2,
            .head_size = kSmallHead,
            .sequences = std::move(sequences)};
  }

  // The chosen plan, except that a CPU driver gets fewer keys per tile, because compile time grows
  // with them: two blocks of the cache for F16, so that a tile spans more than one.
  AttentionPlan choose(const DeviceCaps& caps, const AttentionCase& test,
                       bool deterministic = false, uint32_t key_blocks = 0) {
    AttentionPlan plan = choose_attention(caps, shape_of(test), deterministic);
    if (key_blocks == 0) key_blocks = test.kv == KvFormat::kF16 ? 2 : 1;
    if (on_cpu() && plan.many)
      plan.many->pipeline.constants.set("kKeys", key_blocks * params::kTokensPerBlock);
    return plan;
  }
  // The same with the smallest possible splits.
  static AttentionPlan split_most(const AttentionCase& test, const AttentionPlan& plan) {
    return with_tuning(test, plan,
                       {.few_tokens = plan.tuning.few_tokens,
                        .many_tokens = plan.tuning.many_tokens,
                        .split_keys = params::kTokensPerBlock,
                        .wanted_items = 7,
                        .dealt = plan.tuning.dealt});
  }

  static double limit_of(const AttentionPlan& plan) {
    const bool halves = plan.many || plan.few.pipeline.kernel.starts_with("attention_direct");
    return halves ? kAttentionHalfLimit : kAttentionLimit;
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

  void check_both(const AttentionCase& test, const AttentionPlan& plan,
                  RowForm form = RowForm::kFloats) {
    check(test, plan, form);
    check(test, split_most(test, plan), form);
  }
  // On every tier, as chosen and with the smallest possible splits.
  void check(const AttentionCase& test) {
    for (const DeviceCaps& caps : tiers())
      if (takes(caps, test.head_size)) check_both(test, choose(caps, test));
  }

  static AttentionPlan with_tuning(const AttentionCase& test, AttentionPlan plan,
                                   const AttentionTuning& tuning) {
    plan.tuning = tuning;
    plan.capacity = attention_capacity(tuning, shape_of(test).bucket);
    plan.few.groups.x = plan.capacity.few;
    if (plan.many) plan.many->groups.x = plan.capacity.many;
    return plan;
  }
};

// Head sizes, heads per KV head and cache formats, in pairs.
TEST_F(AttentionTest, HeadSizesAndHeadsPerKvHead) {
  const std::vector<AttentionSequence> sequences = {{36, 1}, {0, 19}, {17, 9}, {40, 1}, {0, 1}};
  check(small(sequences));
  check(small(sequences, KvFormat::kQ8_0));
  struct Heads {
    KvFormat kv;
    uint32_t head_size, heads, kv_heads;
  };
  for (const auto& [kv, head_size, heads, kv_heads] : {Heads{KvFormat::kF16, 32, 3, 3},
                                                       {KvFormat::kF16, 64, 1, 1},
                                                       {KvFormat::kQ8_0, kOddHead, 6, 2},
                                                       {KvFormat::kF16, 96, 3, 1},
                                                       {KvFormat::kQ8_0, 128, 6, 2},
                                                       {KvFormat::kF16, 256, 12, 4}})
    check({.kv = kv,
           .heads = heads,
           .kv_heads = kv_heads,
           .head_size = head_size,
           .sequences = sequences});
}

TEST_F(AttentionTest, SequencesOfDifferentLengthsInOneBatch) {
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0})
    check(small({{0, 1}, {14, 1}, {15, 1}, {16, 1}, {99, 1}, {999, 1}}, kv));
}

TEST_F(AttentionTest, Prompts) {
  for (const uint32_t tokens : {1u, 15u, 16u, 17u, 100u})
    check(small({{0, tokens}, {tokens, 3}, {3, tokens}}));
  check(small({{900, 100}}, KvFormat::kQ8_0));
}

TEST_F(AttentionTest, Windows) {
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
    if (on_cpu() && kv == KvFormat::kQ8_0) continue;  // slow to compile, and the same code there
    for (const uint32_t window : {1u, 5u, 16u, 17u, 50u, 1000u}) {
      AttentionCase test = small({{70, 1}, {0, 33}, {100, 40}, {3, 1}}, kv);
      // Two heads per KV head, so that an item has several tokens; for an item of one token the
      // work list itself excludes the keys before the window.
      test.heads = 4;
      test.window = window;
      check(test);
    }
  }
}

TEST_F(AttentionTest, SoftCap) {
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
    for (const float cap : {1.0f, 20.0f}) {
      AttentionCase test = small({{40, 1}, {5, 20}}, kv);
      test.soft_cap = cap;
      check(test);
    }
  }
}

// Sinks far below the scores, among them and far above them, with and without splits. A sink above
// all scores leaves next to nothing of the values.
TEST_F(AttentionTest, Sinks) {
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
    if (on_cpu() && kv == KvFormat::kQ8_0) continue;  // slow to compile, and the same code there
    AttentionCase test = small({{70, 1}, {0, 33}, {300, 20}, {3, 1}}, kv);
    test.heads = 4;
    test.sinks = {-40.0f, 0.5f, 3.0f, 6.0f};
    for (const uint32_t window : {0u, 12u}) {
      test.window = window;
      for (const DeviceCaps& caps : tiers())
        if (!on_cpu() || !caps.features.coopmat || is_cpu(caps))
          check_both(test, choose(caps, test));
    }
  }
}

// Ranks that have some of the blocks each, merged: every kernel leaves sums, with and without
// splits. Some sequences have all of their keys on one rank.
TEST_F(AttentionTest, RanksWithSomeOfTheKeys) {
  for (const uint32_t ranks : {2u, 3u})
    for (const uint32_t window : {0u, 12u}) {
      AttentionCase test = small({{70, 1}, {0, 33}, {300, 20}, {3, 1}, {40, 1}});
      test.heads = 4;
      test.ranks = ranks;
      test.window = window;
      for (const bool sinks : {false, true}) {
        if (sinks) test.sinks = {-40.0f, 0.5f, 3.0f, 6.0f};
        for (const DeviceCaps& caps : tiers()) {
          if (on_cpu() && caps.features.coopmat && !is_cpu(caps) && (sinks || ranks == 3)) continue;
          const AttentionPlan plan = choose(caps, test);
          EXPECT_TRUE(plan.tuning.dealt);
          EXPECT_FALSE(plan.ropes || plan.writes_halves);
          const AttentionData data = make_attention_data(test, test.head_size + window);
          for (const AttentionPlan& each : {plan, split_most(test, plan)})
            EXPECT_LT(nmse(attend_dealt(test, data, each), reference_attention(test, data)),
                      limit_of(plan))
                << ranks << " ranks: " << describe(test, each);
        }
      }
    }
}

// The next product may want its rows as f16. Every kernel writes every form it supports once; the
// last sequence is long enough to be split as chosen, too.
TEST_F(AttentionTest, WritesEveryRowForm) {
  const AttentionCase mixed = small({{36, 1}, {0, 19}, {40, 1}, {700, 1}});
  check_both(mixed, choose(gpu(), mixed, false, 1), RowForm::kHalves);
}

TEST_F(AttentionTest, AChunkedPromptGivesTheSameResultAsTheWholePrompt) {
  const AttentionCase whole = small({{0, 50}});
  const AttentionData data = make_attention_data(whole, 1);
  for (const DeviceCaps& caps : tiers()) {
    const AttentionPlan whole_plan = choose(caps, whole);
    const std::vector<float> at_once = attend(whole, data, whole_plan);
    const std::vector<double> expected(at_once.begin(), at_once.end());
    for (const uint32_t chunk : {1u, 7u, 16u}) {
      std::vector<float> pieces;
      for (uint32_t begin = 0; begin < 50; begin += chunk) {
        AttentionCase piece = whole;
        piece.sequences = {{begin, std::min(chunk, 50 - begin)}};
        const std::vector<float> rows =
            attend(piece, make_attention_data(piece, 1), choose(caps, piece));
        pieces.insert(pieces.end(), rows.begin(), rows.end());
      }
      EXPECT_LT(nmse(pieces, expected), limit_of(whole_plan)) << "chunks of " << chunk;
    }
  }
}

// The basis of --deterministic: a row has the same bits alone, in a batch, and in another chunk.
TEST_F(AttentionTest, DeterministicRowsHaveTheSameBitsInEveryBatch) {
  for (const DeviceCaps& caps : tiers()) {
    for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
      AttentionCase batch = small({{75, 5}, {0, 30}, {111, 1}}, kv);
      batch.window = 60;
      const auto plan_for = [&](const AttentionCase& test) {
        AttentionPlan plan = choose(caps, test, true);
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

TEST_F(AttentionTest, RowKernelWithTilesOfSeveralTokens) {
  const uint32_t subgroup = device().caps().subgroup_size;
  AttentionCase test{
      .heads = 6, .kv_heads = 2, .head_size = kSmallHead, .sequences = {{50, 3}, {90, 1}}};
  struct RowTile {
    KvFormat kv;
    uint32_t subgroups, lanes, run, overlap;
  };
  for (const auto& [kv, subgroups, lanes, run, overlap] : {RowTile{KvFormat::kF16, 1, 1, 2, 0},
                                                           {KvFormat::kQ8_0, 3, 2, 1, 1},
                                                           {KvFormat::kQ8_0, 1, subgroup, 4, 0},
                                                           {KvFormat::kF16, 3, subgroup, 2, 1},
                                                           {KvFormat::kF16, 1, 2, 1, 1}}) {
    test.kv = kv;
    AttentionPlan plan = choose(gpu(), test);
    plan.few.pipeline.constants =
        params::AttentionRowsConstants{.kWorkgroupSize = subgroup * subgroups,
                                       .kSubgroupSize = subgroup,
                                       .kSubgroups = subgroups,
                                       .kHeadSize = kSmallHead,
                                       .kRows = 2,
                                       .kStreamLanes = lanes,
                                       .kRun = run,
                                       .kDoubleBuffer = overlap};
    plan.many.reset();
    plan.few.groups.y = 2 * 3;  // 2 tokens x 3 heads, two rows per workgroup
    check(test, with_tuning(test, plan, {.few_tokens = 2, .split_keys = 64, .wanted_items = 3}));
  }
}

TEST_F(AttentionTest, UnsupportedShapesAreRefused) {
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
         .block_tables = any.all(),
         .work = {.few = any.all(), .many = {}},
         .counts = {},
         .partials = {},
         .shape = shape});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
    ASSERT_OK(recorder.finish());
  }
}

}  // namespace
}  // namespace hearth::testing
