#include <algorithm>
#include <numeric>
#include <random>

#include "engine/model/step_batch.h"
#include "engine/ops/rope.h"
#include "engine/ops/rope_table.h"
#include "params/step.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"
#include "tests/support/reference_rope.h"

namespace hearth::testing {
namespace {

constexpr double kRopeLimit = 1e-12;  // NMSE of q: f32 throughout
constexpr float kAttentionScale = 1.19f;
constexpr float kEpsilon = 1e-6f;

struct Member {
  uint32_t rows, first_position;
  std::vector<uint32_t> parents = {};  // of a tree at the end
};

// A prompt chunk that crosses blocks, single tokens at the edges of a block and at a far position,
// a sequence without rows, and padding rows at the end.
const std::vector<Member> kMembers = {{5, 13}, {1, 0}, {1, 15}, {0, 3}, {1, 16}, {3, 131'069}};
// Trees at the end of sequences, one of them with only a tree, one across blocks.
const std::vector<Member> kTrees = {{7, 12, {kTreeRoot, 0, kTreeRoot, 2, 1}},
                                    {1, 3},
                                    {4, 20, {kTreeRoot, kTreeRoot, 0, 1}},
                                    {2, 15}};
constexpr uint32_t kPaddingRows = 2;
constexpr uint32_t kPoolBlocks = 24;

// A batch as the engine lays it out, with block ids scattered over the pool.
struct Batch {
  std::vector<params::StepSequence> sequences;
  std::vector<uint32_t> row_sequences, block_tables;
  std::vector<uint64_t> positions;  // of each row that is not padding
  std::vector<uint64_t> paths;      // the length of its path, less one
  StepBatch trees;                  // only for its ancestors
  std::vector<uint32_t> blocks;     // of each such row

  explicit Batch(const std::vector<Member>& members) {
    std::vector<uint32_t> free(kPoolBlocks);
    std::iota(free.begin(), free.end(), 0u);
    std::shuffle(free.begin(), free.end(), std::mt19937(3));
    for (const Member& member : members) {
      const uint32_t table_begin = static_cast<uint32_t>(block_tables.size());
      sequences.push_back({.first_row = static_cast<uint32_t>(row_sequences.size()),
                           .rows = member.rows,
                           .first_position = member.first_position,
                           .block_table = table_begin});
      // Blocks that this step does not write have an invalid id, which would be noticed at once.
      const uint32_t end = member.first_position + member.rows;
      for (uint32_t block = 0; block * params::kTokensPerBlock < end; ++block) {
        const bool written = (block + 1) * params::kTokensPerBlock > member.first_position;
        block_tables.push_back(written ? free.back() : 0xffffu);
        if (written) free.pop_back();
      }
      for (uint32_t i = 0; i < member.rows; ++i) {
        row_sequences.push_back(static_cast<uint32_t>(sequences.size() - 1));
        positions.push_back(member.first_position + i);
        blocks.push_back(block_tables[table_begin + positions.back() / params::kTokensPerBlock]);
        const size_t first = member.rows - member.parents.size();
        const uint32_t parent = i < first ? kTreeRoot : member.parents[i - first];
        const uint64_t own_row = paths.size();
        paths.push_back(i < first             ? positions.back()
                        : parent == kTreeRoot ? member.first_position + first
                                              : paths[own_row - i + first + parent] + 1);
      }
      trees.add_sequence(0, std::vector<uint32_t>(member.rows), std::vector<uint32_t>(),
                         member.parents);
    }
    row_sequences.insert(row_sequences.end(), kPaddingRows, params::kNoSequence);
  }
  uint32_t rows() const { return static_cast<uint32_t>(row_sequences.size()); }
};

class RopeKvTest : public GpuTest {
 protected:
  void check(RopeKvShape shape, bool fused) { check(shape, fused, {}); }

  void check(RopeKvShape shape, bool fused, KernelPlan plan) {
    SCOPED_TRACE(::testing::Message()
                 << "head size " << shape.head_size << ", rotated " << shape.rope_dims
                 << (shape.pairs == RopePairs::kAdjacent ? " adjacent" : " halves")
                 << (shape.head_norms ? " normed " : " ") << kv_format_name(shape.kv)
                 << (fused ? " fused" : " separate"));
    Batch batch(shape.trees ? kTrees : kMembers);
    shape.rows = batch.rows();
    if (plan.pipeline.kernel.empty()) plan = choose_rope_kv(device().caps(), shape);
    plan.groups.y = shape.rows;
    const uint32_t q_width = shape.heads * shape.head_size;
    const uint32_t kv_width = shape.kv_heads * shape.head_size;

    const std::vector<float> q = random_floats(size_t{shape.rows} * q_width, 1);
    const std::vector<float> k = random_floats(size_t{shape.rows} * kv_width, 2);
    const std::vector<float> v = random_floats(size_t{shape.rows} * kv_width, 3);
    const std::vector<float> q_norm = random_floats(shape.head_size, 4);
    const std::vector<float> k_norm = random_floats(shape.head_size, 5);

    RopeTable table;
    if (shape.rope_dims > 0) {
      ASSERT_ASSIGN(table, make_rope_table({.dims = shape.rope_dims,
                                            .attention_factor = double{kAttentionScale}}));
    }
    const Buffer table_buffer = filled(rope_table_words(table));
    std::vector<uint32_t> owners = batch.row_sequences;
    if (shape.trees) {
      batch.trees.ancestors.resize(shape.rows);
      owners.insert(owners.end(), batch.trees.ancestors.begin(), batch.trees.ancestors.end());
    }
    const Buffer sequences = filled(batch.sequences), rows = filled(owners);
    const Buffer tables = filled(batch.block_tables);
    const Buffer q_norm_buffer = filled(q_norm), k_norm_buffer = filled(k_norm);

    const uint64_t cache_bytes =
        kPoolBlocks * kv_block_bytes(shape.kv, shape.kv_heads, shape.head_size);
    const uint64_t scale_bytes =
        kPoolBlocks * kv_block_scale_bytes(shape.kv, shape.kv_heads, shape.head_size);
    const Buffer keys = poisoned(cache_bytes), values = poisoned(cache_bytes);
    const Buffer key_scales = poisoned(scale_bytes + 16), value_scales = poisoned(scale_bytes + 16);

    RopeKv op{.q = {},
              .k = {},
              .v = {},
              .q_out = {},
              .q_norm = q_norm_buffer.all(),
              .k_norm = k_norm_buffer.all(),
              .table = table_buffer.all(),
              .cache = {keys.all(), values.all(), key_scales.all(), value_scales.all()},
              .sequences = sequences.all(),
              .row_sequences = rows.all(),
              .block_tables = tables.all(),
              .shape = shape,
              .epsilon = kEpsilon};
    const uint32_t stride = q_width + 2 * kv_width;
    Buffer qkv_buffer, q_buffer, k_buffer, v_buffer, q_out_buffer;
    if (fused) {
      std::vector<float> qkv;
      for (size_t r = 0; r < shape.rows; ++r) {
        const auto append = [&](const std::vector<float>& part, size_t width) {
          const std::span<const float> row(part.data() + r * width, width);
          qkv.insert(qkv.end(), row.begin(), row.end());
        };
        append(q, q_width);
        append(k, kv_width);
        append(v, kv_width);
      }
      if (shape.parts > 1) {
        // Two partial sums: a quarter, and the rest.
        std::vector<float> parts = qkv;
        for (float& part : parts) part *= 0.25f;
        op.shape.partial_stride = shape.partial_stride = static_cast<uint32_t>(qkv.size());
        plan = choose_rope_kv(device().caps(), shape);
        for (const float value : qkv) parts.push_back(value - 0.25f * value);
        qkv = parts;
      }
      qkv_buffer = filled(qkv);
      use_fused_qkv(op, qkv_buffer.all());
    } else {
      q_buffer = filled(q);
      k_buffer = filled(k);
      v_buffer = filled(v);
      q_out_buffer = poisoned(q.size() * 4);
      op.q.slice = q_buffer.all();
      op.k.slice = k_buffer.all();
      op.v.slice = v_buffer.all();
      op.q_out.slice = q_out_buffer.all();
    }
    run([&](CommandRecorder& recorder) { return record_rope_kv(recorder, pipelines(), plan, op); });

    const std::vector<double> frequencies = plain_frequencies(shape.rope_dims);
    const auto head_of = [&](const std::vector<float>& x, size_t r, size_t heads, size_t h,
                             const std::vector<float>& norm) {
      return reference_head({x.data() + (r * heads + h) * shape.head_size, shape.head_size},
                            shape.head_norms ? std::span<const float>(norm) : std::span<float>(),
                            double{kEpsilon}, batch.paths[r], frequencies,
                            shape.pairs == RopePairs::kAdjacent, double{kAttentionScale});
    };

    // Queries. Padding rows are unchanged.
    const std::vector<float> out = read<float>(fused ? qkv_buffer : q_out_buffer);
    const size_t out_stride = fused ? stride : q_width;
    std::vector<float> queries;
    std::vector<double> expected;
    for (size_t r = 0; r < shape.rows; ++r) {
      const float* row = out.data() + r * out_stride;
      if (r >= batch.positions.size()) {
        for (size_t i = 0; i < q_width; ++i) {
          if (fused) {
            const float first_part = shape.parts > 1 ? 0.25f : 1.0f;
            ASSERT_EQ(row[i], first_part * q[r * q_width + i]) << "padding row written";
          } else {
            ASSERT_TRUE(std::isnan(row[i])) << "padding row written";
          }
        }
        continue;
      }
      queries.insert(queries.end(), row, row + q_width);
      for (size_t h = 0; h < shape.heads; ++h) {
        const std::vector<double> head = head_of(q, r, shape.heads, h, q_norm);
        expected.insert(expected.end(), head.begin(), head.end());
      }
    }
    EXPECT_LT(nmse(queries, expected), kRopeLimit);

    // The cache: rows that were written are correct, all other bytes are unchanged.
    CacheImage key_image{read<std::byte>(keys), read<std::byte>(key_scales)};
    CacheImage value_image{read<std::byte>(values), read<std::byte>(value_scales)};
    for (size_t r = 0; r < batch.positions.size(); ++r) {
      for (uint32_t h = 0; h < shape.kv_heads; ++h) {
        const uint32_t slot = static_cast<uint32_t>(batch.positions[r] % params::kTokensPerBlock);
        const size_t kv_row =
            (size_t{batch.blocks[r]} * shape.kv_heads + h) * params::kTokensPerBlock + slot;
        take_and_compare(key_image, shape, kv_row, head_of(k, r, shape.kv_heads, h, k_norm));
        const float* value = v.data() + (r * shape.kv_heads + h) * shape.head_size;
        take_and_compare(value_image, shape, kv_row,
                         std::vector<double>(value, value + shape.head_size));
        if (HasFailure()) return;
      }
    }
    for (const CacheImage* image : {&key_image, &value_image}) {
      const auto untouched = [](std::byte byte) { return byte == std::byte{0xff}; };
      EXPECT_TRUE(std::all_of(image->rows.begin(), image->rows.end(), untouched));
      EXPECT_TRUE(std::all_of(image->scales.begin(), image->scales.end(), untouched));
    }
  }

  struct CacheImage {
    std::vector<std::byte> rows, scales;
  };

  // Checks one KV row and restores the poison.
  static void take_and_compare(CacheImage& image, const RopeKvShape& shape, size_t kv_row,
                               const std::vector<double>& expected) {
    const auto take = [](std::vector<std::byte>& from, size_t offset, auto& value) {
      std::memcpy(&value, from.data() + offset, sizeof(value));
      std::memset(from.data() + offset, 0xff, sizeof(value));
    };
    if (shape.kv == KvFormat::kF16) {
      for (size_t i = 0; i < shape.head_size; ++i) {
        uint16_t half;
        take(image.rows, (kv_row * shape.head_size + i) * 2, half);
        // Half a quantization step either way, plus f32 rounding.
        ASSERT_NEAR(double{from_half(half)}, expected[i], std::abs(expected[i]) / 2040 + 1e-6)
            << "element " << i;
      }
      return;
    }
    const size_t groups = (shape.head_size + 31) / 32;
    for (size_t group = 0; group < groups; ++group) {
      const size_t end = std::min<size_t>(shape.head_size, group * 32 + 32);
      double most = 0;
      for (size_t i = group * 32; i < end; ++i) most = std::max(most, std::abs(expected[i]));
      uint16_t half;
      take(image.scales, (kv_row * groups + group) * 2, half);
      const double d = double{from_half(half)};
      ASSERT_NEAR(d, most / 127, most / 127 / 1024) << "scale group " << group;
      for (size_t i = group * 32; i < end; ++i) {
        int8_t q;
        take(image.rows, kv_row * shape.head_size + i, q);
        // Half a quantization step, plus the rounding of the scale: a driver may divide by the
        // scale before it was rounded (NVIDIA's does).
        ASSERT_NEAR(q * d, expected[i], d * 0.5001 + std::abs(expected[i]) / 1024)
            << "element " << i;
      }
    }
  }
};

// Ratios of heads that leave subgroups of the last workgroup idle.
RopeKvShape shape_of(uint32_t head_size, uint32_t rope_dims) {
  return {.heads = 5, .kv_heads = 2, .head_size = head_size, .rope_dims = rope_dims};
}

TEST_F(RopeKvTest, EveryCombinationOfOptions) {
  for (const uint32_t head_size : {32u, 64u, 80u, 96u, 128u, 256u}) {
    for (const bool partial : {false, true}) {
      // Compiling a variant takes longer than running it: two sizes get all combinations, most
      // sizes only enough to cover each pair of choices.
      if (partial && head_size != 80 && head_size != 128) continue;
      const bool all = partial && head_size == 80;
      RopeKvShape shape = shape_of(head_size, partial ? head_size / 16 * 8 : head_size);
      for (const RopePairs pairs : {RopePairs::kAdjacent, RopePairs::kHalves}) {
        for (const bool norms : {false, true}) {
          for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
            if (!all && ((pairs == RopePairs::kHalves) ^ norms ^ (kv == KvFormat::kQ8_0))) continue;
            shape.pairs = pairs;
            shape.head_norms = norms;
            shape.kv = kv;
            check(shape, false);
            check(shape, true);
          }
        }
      }
    }
  }
}

TEST_F(RopeKvTest, AddsPartialSums) {
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0})
    for (const bool norms : {false, true})
      check({.heads = 4,
             .kv_heads = 2,
             .head_size = 64,
             .rope_dims = 64,
             .pairs = norms ? RopePairs::kHalves : RopePairs::kAdjacent,
             .head_norms = norms,
             .kv = kv,
             .parts = 2},
            true);
}

TEST_F(RopeKvTest, WorksWithoutRotation) {
  for (const RopePairs pairs : {RopePairs::kAdjacent, RopePairs::kHalves}) {
    RopeKvShape shape = shape_of(64, 0);
    shape.pairs = pairs;
    shape.head_norms = true;
    check(shape, true);
  }
}

TEST_F(RopeKvTest, WorkgroupsOfAnyNumberOfSubgroups) {
  for (const uint32_t subgroups : {1u, 2u, 3u, 8u, 16u}) {
    for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
      RopeKvShape shape = shape_of(80, 80);
      shape.kv = kv;
      KernelPlan plan = choose_rope_kv(device().caps(), shape);
      plan.pipeline.constants.set("kWorkgroupSize", subgroups * device().caps().subgroup_size);
      plan.groups.x = divide_up(shape.heads + 2 * shape.kv_heads, subgroups);
      check(shape, true, plan);
    }
  }
}

TEST_F(RopeKvTest, SeveralQuadsPerLane) {
  for (const uint32_t quads : {2u, 4u, 8u}) {
    RopeKvShape shape = shape_of(80, 40);
    shape.kv = KvFormat::kQ8_0;
    KernelPlan plan = choose_rope_kv(device().caps(), shape);
    plan.pipeline.constants.set("kLaneQuads", quads);
    check(shape, true, plan);
  }
}

// Pairs (1, 0) give cosine and sine themselves.
TEST_F(RopeKvTest, AnglesAreAccurateAtEveryPosition) {
  const RopeKvShape shape{.rows = 9, .heads = 1, .kv_heads = 1, .head_size = 128, .rope_dims = 128};
  const std::vector<uint32_t> positions = {0, 1, 2, 3, 4095, 32'768, 65'537, 131'072, 10'000'000};
  std::vector<params::StepSequence> members;
  std::vector<uint32_t> owners, tables;
  for (uint32_t i = 0; i < shape.rows; ++i) {
    // The table begins so far before the array that entry position / 16 is block i.
    tables.push_back(i);
    members.push_back({i, 1, positions[i], i - positions[i] / params::kTokensPerBlock});
    owners.push_back(i);
  }
  std::vector<float> x(size_t{shape.rows} * 128);
  for (size_t i = 0; i < x.size(); i += 2) x[i] = 1.0f;
  ASSERT_ASSIGN(const RopeTable table, make_rope_table({.dims = 128, .base = 500'000.0}));
  const Buffer table_buffer = filled(rope_table_words(table)), q = filled(x), kv = filled(x);
  const Buffer sequences = filled(members), rows = filled(owners), blocks = filled(tables);
  const Buffer keys = poisoned(shape.rows * kv_block_bytes(shape.kv, 1, 128));
  const Buffer values = poisoned(keys.bytes());
  run([&](CommandRecorder& recorder) {
    return record_rope_kv(recorder, pipelines(), choose_rope_kv(device().caps(), shape),
                          {.q = {q.all()},
                           .k = {kv.all()},
                           .v = {kv.all()},
                           .q_out = {q.all()},
                           .q_norm = {},
                           .k_norm = {},
                           .table = table_buffer.all(),
                           .cache = {keys.all(), values.all(), {}, {}},
                           .sequences = sequences.all(),
                           .row_sequences = rows.all(),
                           .block_tables = blocks.all(),
                           .shape = shape});
  });
  const std::vector<float> out = read<float>(q);
  const std::vector<double> frequencies = plain_frequencies(128, 500'000.0);
  for (size_t r = 0; r < positions.size(); ++r) {
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = positions[r] * frequencies[i];
      ASSERT_NEAR(double{out[r * 128 + 2 * i]}, std::cos(angle), 5e-7) << positions[r] << " " << i;
      ASSERT_NEAR(double{out[r * 128 + 2 * i + 1]}, std::sin(angle), 5e-7) << positions[r];
    }
  }
}

// Rows of trees are rotated by their place on their own path and stored in their place in the
// cache.
TEST_F(RopeKvTest, Trees) {
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
    RopeKvShape shape = shape_of(64, 32);
    shape.kv = kv;
    shape.trees = true;
    shape.head_norms = kv == KvFormat::kF16;
    check(shape, kv == KvFormat::kF16);
  }
}

TEST_F(RopeKvTest, UnsupportedShapesAreRefused) {
  const Buffer any = poisoned(64);
  const auto status_of = [&](const RopeKvShape& shape, uint32_t q_stride) -> Status {
    HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
    return record_rope_kv(recorder, pipelines(), choose_rope_kv(device().caps(), shape),
                          {.q = {any.all(), q_stride},
                           .k = {any.all()},
                           .v = {any.all()},
                           .q_out = {any.all()},
                           .q_norm = {},
                           .k_norm = {},
                           .table = any.all(),
                           .cache = {any.all(), any.all(), {}, {}},
                           .sequences = any.all(),
                           .row_sequences = any.all(),
                           .block_tables = any.all(),
                           .shape = shape});
  };
  const auto refused = [&](const RopeKvShape& shape, uint32_t q_stride) {
    const Status status = status_of(shape, q_stride);
    return !status.ok() && status.error().kind == ErrorKind::kInvalid;
  };
  const auto with = [](uint32_t rows, uint32_t head_size, uint32_t rope_dims) {
    RopeKvShape shape = shape_of(head_size, rope_dims);
    shape.rows = rows;
    return shape;
  };
  EXPECT_TRUE(refused(with(0, 64, 64), 0));
  EXPECT_TRUE(refused(with(1, 72, 64), 0));
  EXPECT_TRUE(refused(with(1, 64, 60), 0));
  EXPECT_TRUE(refused(with(1, 64, 72), 0));
  EXPECT_TRUE(refused(with(1, 64, 64), 5 * 64 + 2));
  EXPECT_TRUE(refused(with(1, 64, 64), 4 * 64));
  EXPECT_TRUE(status_of(with(1, 64, 64), 5 * 64 + 4).ok());
}

}  // namespace
}  // namespace hearth::testing
