// Attention with fused rope gives the same result and the same cache as rope_kv followed by
// attention.
#include <numeric>
#include <random>

#include "engine/ops/attention.h"
#include "engine/ops/rope.h"
#include "engine/ops/rope_table.h"
#include "tests/support/attention.h"

namespace hearth::testing {
namespace {

// The two may round a key differently, depending on the driver's choice of instructions, so results
// differ by more than f32 rounding.
constexpr double kRopedLimit = 1e-7;  // NMSE

// Tokens in the cache before the step, one sequence each: none, up to a block's end, many.
const std::vector<uint32_t> kBefore = {0, 14, 15, 16, 250, 71};

struct RopeCase {
  RopeKvShape shape;
  bool separate_values = false;  // v in a matrix of its own, as if its weights had another format
  bool split = false;            // into many small ones
  bool one_row = false;          // a single sequence, and no padding
  uint32_t window = 0;
  uint32_t direct = 0;  // subgroups of attention_direct, real or emulated
};

class AttentionRopeTest : public AttentionGpuTest {
 protected:
  DeviceCaps gpu() {
    DeviceCaps caps = device().caps();
    caps.type = DeviceType::kDiscrete;
    return caps;
  }

  // A cache in which every element has a unique value.
  struct Cache {
    Buffer keys, values, key_scales, value_scales;
    PagedKv slices() const {
      return {keys.all(), values.all(), key_scales.all(), value_scales.all()};
    }
  };
  Cache make_cache(const RopeKvShape& shape, uint64_t blocks) {
    const auto rows = [&](uint32_t seed) {
      const uint64_t bytes = blocks * kv_block_bytes(shape.kv, shape.kv_heads, shape.head_size);
      if (shape.kv == KvFormat::kF16) return filled(to_half(random_floats(bytes / 2, seed)));
      std::vector<int8_t> numbers;
      for (const float x : random_floats(bytes, seed))
        numbers.push_back(static_cast<int8_t>(std::clamp(x * 50, -127.0f, 127.0f)));
      return filled(numbers);
    };
    const auto scales = [&](uint32_t seed) {
      const uint64_t bytes =
          blocks * kv_block_scale_bytes(shape.kv, shape.kv_heads, shape.head_size);
      return filled(to_half(random_floats(std::max<uint64_t>(bytes / 2, 8), seed)));
    };
    return {rows(11), rows(12), scales(13), scales(14)};
  }
  std::vector<float> numbers_of(const Buffer& rows, KvFormat kv) {
    std::vector<float> numbers;
    if (kv == KvFormat::kF16)
      for (const uint16_t half : read<uint16_t>(rows)) numbers.push_back(from_half(half));
    else
      for (const int8_t byte : read<int8_t>(rows)) numbers.push_back(byte);
    return numbers;
  }
  static void expect_alike(const std::vector<float>& found, const std::vector<float>& expected,
                           const char* what) {
    EXPECT_LT(nmse(found, std::vector<double>(expected.begin(), expected.end())), kRopedLimit)
        << what;
  }

  void check(const RopeCase& test) {
    RopeKvShape shape = test.shape;
    SCOPED_TRACE(::testing::Message()
                 << shape.heads << " heads over " << shape.kv_heads << " of " << shape.head_size
                 << ", rotated " << shape.rope_dims
                 << (shape.pairs == RopePairs::kAdjacent ? " adjacent " : " halves ")
                 << kv_format_name(shape.kv) << (shape.head_norms ? ", normed" : "")
                 << (test.split ? ", split" : "") << ", window " << test.window);
    const std::vector<uint32_t> before(test.one_row ? kBefore.end() - 1 : kBefore.begin(),
                                       kBefore.end());
    const auto rows = static_cast<uint32_t>(before.size());
    const uint32_t padding = test.one_row ? 0 : 2;  // one of them sees keys
    shape.rows = rows + padding;
    const uint32_t q_width = shape.heads * shape.head_size;
    const uint32_t kv_width = shape.kv_heads * shape.head_size;

    std::vector<params::StepSequence> sequences;
    std::vector<uint32_t> owners, tables;
    for (uint32_t i = 0; i < rows; ++i) {
      sequences.push_back({.first_row = i,
                           .rows = 1,
                           .first_position = before[i],
                           .block_table = static_cast<uint32_t>(tables.size())});
      owners.push_back(i);
      tables.resize(tables.size() + before[i] / params::kTokensPerBlock + 1);
    }
    owners.resize(shape.rows, params::kNoSequence);
    if (padding > 0) {
      sequences.push_back(sequences[4]);
      sequences.back().first_row = rows;
    }
    std::iota(tables.begin(), tables.end(), 1u);
    std::shuffle(tables.begin(), tables.end(), std::mt19937(1));
    const uint64_t blocks = tables.size() + 2;

    const AttentionShape attention_shape{.kv = shape.kv,
                                         .heads = shape.heads,
                                         .kv_heads = shape.kv_heads,
                                         .head_size = shape.head_size,
                                         .bucket = {.rows = shape.rows,
                                                    .sequences = shape.rows,
                                                    .sequence_rows = 1,
                                                    .sequence_tokens = 251}};
    AttentionPlan plan = choose_attention(gpu(), attention_shape);
    ASSERT_TRUE(plan.ropes);
    if (test.direct > 0) {
      plan.few = direct_kernel(attention_shape, false, test.direct);
      plan.tuning.split_keys = 1024;
    }
    if (test.split) plan.tuning.split_keys = params::kTokensPerBlock;
    plan.capacity = attention_capacity(plan.tuning, attention_shape.bucket);
    plan.few.groups.x = plan.capacity.few;
    AttentionPlanner planner;
    ASSERT_OK(planner.plan({.sequences = sequences, .members = rows, .window = test.window},
                           plan.tuning, plan.capacity));

    // The projection's output: whole, or as partial sums to be added.
    const uint32_t floats = shape.rows * (q_width + 2 * kv_width);
    shape.partial_stride = shape.parts > 1 ? floats : 0;
    const Buffer qkv = filled(random_floats(size_t{floats} * shape.parts, 1));
    ASSERT_ASSIGN(const RopeTable table, make_rope_table({.dims = shape.rope_dims}));
    const Buffer table_buffer = filled(rope_table_words(table));
    const Buffer q_norm = filled(random_floats(shape.head_size, 2));
    const Buffer k_norm = filled(random_floats(shape.head_size, 3));
    const Buffer sequence_buffer = filled(sequences), owner_buffer = filled(owners);
    const Buffer block_tables = filled(tables), items = filled(planner.work().few);
    const Buffer queries = poisoned(uint64_t{shape.rows} * q_width * 4);
    const Cache separate = make_cache(shape, blocks), fused = make_cache(shape, blocks);

    RopeKv rope{.q = {},
                .k = {},
                .v = {},
                .q_out = {},
                .q_norm = q_norm.all(),
                .k_norm = k_norm.all(),
                .table = table_buffer.all(),
                .cache = separate.slices(),
                .sequences = sequence_buffer.all(),
                .row_sequences = owner_buffer.all(),
                .block_tables = block_tables.all(),
                .shape = shape};
    use_fused_qkv(rope, qkv.all());
    if (test.separate_values) {
      rope.q.stride = rope.k.stride = q_width + kv_width;
      rope.v = {.slice = qkv.slice(uint64_t{shape.rows} * rope.q.stride * 4,
                                   uint64_t{shape.rows} * kv_width * 4)};
    }
    rope.q_out = {queries.all()};

    const AttentionScratch scratch = attention_scratch(plan.capacity, attention_shape);
    const Buffer expected = poisoned(queries.bytes()), result = poisoned(queries.bytes());
    Attention op{.q = queries.all(),
                 .result = expected.all(),
                 .cache = separate.slices(),
                 .block_tables = block_tables.all(),
                 .work = {.few = items.all(), .many = {}},
                 .counts = scratch.counts(),
                 .partials = scratch.partials(),
                 .shape = attention_shape,
                 .window = test.window,
                 .scale = 0.3f};
    run([&](CommandRecorder& recorder) -> Status {
      HEARTH_TRY(record_rope_kv(recorder, pipelines(), choose_rope_kv(gpu(), shape), rope));
      return record_attention(recorder, pipelines(), plan, op);
    });
    op.result = result.all();
    op.cache = rope.cache = fused.slices();
    op.rope = &rope;
    run([&](CommandRecorder& recorder) {
      return record_attention(recorder, pipelines(), plan, op);
    });

    std::vector<float> found_rows = read<float>(result), expected_rows = read<float>(expected);
    for (uint32_t i = 0; padding > 0 && i < q_width; ++i) {
      if (test.window != 1) {  // with 1 it would see only its own key, which is not in the cache
        EXPECT_FALSE(std::isnan(found_rows[rows * q_width + i])) << "padding did not see keys";
      }
      EXPECT_TRUE(std::isnan(found_rows[(rows + 1) * q_width + i])) << "padding was written";
    }
    found_rows.resize(size_t{rows} * q_width);
    expected_rows.resize(found_rows.size());
    expect_alike(found_rows, expected_rows, "result");
    expect_alike(numbers_of(fused.keys, shape.kv), numbers_of(separate.keys, shape.kv), "keys");
    expect_alike(numbers_of(fused.values, shape.kv), numbers_of(separate.values, shape.kv),
                 "values");
    expect_alike(numbers_of(fused.key_scales, KvFormat::kF16),
                 numbers_of(separate.key_scales, KvFormat::kF16), "scales of keys");
    expect_alike(numbers_of(fused.value_scales, KvFormat::kF16),
                 numbers_of(separate.value_scales, KvFormat::kF16), "scales of values");
  }
};

// Compiling a variant takes a CPU driver seconds, so the options of models are combined in pairs.
TEST_F(AttentionRopeTest, AgreesWithRopeKvForEveryKindOfModel) {
  check({.shape = {.heads = 4, .kv_heads = 2, .head_size = 16, .rope_dims = 16}});
  check({.shape = {.heads = 3,
                   .kv_heads = 1,
                   .head_size = 32,
                   .rope_dims = 16,
                   .pairs = RopePairs::kHalves,
                   .head_norms = true,
                   .kv = KvFormat::kQ8_0},
         .separate_values = true});
  check({.shape = {.heads = 4, .kv_heads = 2, .head_size = 16, .rope_dims = 16},
         .separate_values = true,
         .one_row = true});
  check({.shape = {.heads = 2,
                   .kv_heads = 2,
                   .head_size = 80,
                   .rope_dims = 80,
                   .pairs = RopePairs::kHalves,
                   .kv = KvFormat::kF16,
                   .parts = 3}});
}

TEST_F(AttentionRopeTest, AgreesWithRopeKvInAttentionDirect) {
  const RopeKvShape shape{.heads = 3, .kv_heads = 1, .head_size = 64, .rope_dims = 64};
  for (const uint32_t window : {0u, 1u, 20u})
    check({.shape = shape, .split = window == 0, .window = window, .direct = 2});
  if (device().caps().features.lane_fragments) check({.shape = shape, .direct = 1});
}

TEST_F(AttentionRopeTest, AgreesWithRopeKvForSplitsAndWindows) {
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0})
    for (const uint32_t window : {0u, 1u, 20u})
      check({.shape = {.heads = 4, .kv_heads = 2, .head_size = 16, .rope_dims = 8, .kv = kv},
             .split = true,
             .window = window});
}

TEST_F(AttentionRopeTest, UnsupportedRopeIsRefused) {
  const Buffer any = poisoned(1 << 16), other = poisoned(1 << 16);
  const AttentionShape shape{
      .heads = 2,
      .kv_heads = 1,
      .head_size = 16,
      .bucket = {.rows = 1, .sequences = 1, .sequence_rows = 1, .sequence_tokens = 64}};
  RopeKv rope{.q = {},
              .k = {},
              .v = {},
              .q_out = {},
              .q_norm = {},
              .k_norm = {},
              .table = any.all(),
              .cache = {any.all(), any.all(), {}, {}},
              .sequences = any.all(),
              .row_sequences = any.all(),
              .block_tables = any.all(),
              .shape = {.rows = 1, .heads = 2, .kv_heads = 1, .head_size = 16, .rope_dims = 16}};
  use_fused_qkv(rope, any.all());
  const auto status_of = [&](const AttentionPlan& plan, const RopeKv& op) -> Status {
    HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
    return record_attention(recorder, pipelines(), plan,
                            {.q = any.all(),
                             .result = other.all(),
                             .cache = op.cache,
                             .block_tables = any.all(),
                             .work = {.few = any.all(), .many = {}},
                             .counts = {},
                             .partials = {},
                             .shape = shape,
                             .rope = &op});
  };
  const AttentionPlan plan = choose_attention(gpu(), shape);
  EXPECT_TRUE(status_of(plan, rope).ok());
  EXPECT_FALSE(status_of(choose_attention(gpu(), shape, true), rope).ok());
  RopeKv elsewhere = rope;
  elsewhere.v.slice = other.all();
  EXPECT_FALSE(status_of(plan, elsewhere).ok());
  RopeKv other_heads = rope;
  other_heads.shape.kv_heads = 2;
  EXPECT_FALSE(status_of(plan, other_heads).ok());
}

}  // namespace
}  // namespace hearth::testing
