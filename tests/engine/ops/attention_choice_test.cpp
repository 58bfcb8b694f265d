// Attention's kernel choice for devices we do not have.
#include <bit>

#include <gtest/gtest.h>

#include "engine/ops/attention.h"
#include "tests/support/fake_devices.h"

namespace hearth {
namespace {

CoopmatShape half_matrix(uint32_t m, uint32_t n, uint32_t k, ScalarType sum = ScalarType::kF32) {
  return {m, n, k, ScalarType::kF16, ScalarType::kF16, sum, sum};
}

struct AttentionDevice {
  const char* name;
  DeviceCaps caps;
  uint32_t matrix_rows;  // rows of the fragments it should get; 0: none
};

AttentionDevice fake(const char* name, DeviceType type, uint32_t subgroup, uint32_t shared_bytes,
                     std::vector<CoopmatShape> matrices, uint32_t matrix_rows) {
  DeviceCaps caps;
  caps.type = type;
  caps.subgroup_size = caps.min_subgroup_size = caps.max_subgroup_size = subgroup;
  caps.limits.max_group_invocations = 1024;
  caps.limits.max_shared_bytes = shared_bytes;
  caps.features.coopmat = !matrices.empty();
  caps.features.float16 = true;
  caps.coopmat_shapes = std::move(matrices);
  if (std::string_view(name).starts_with("nvidia")) caps = testing::as_h200(caps);
  return {name, caps, matrix_rows};
}

std::vector<AttentionDevice> devices() {
  AttentionDevice lanes = fake("nvidia, lanes make fragments", DeviceType::kDiscrete, 32, 49152,
                               {half_matrix(16, 16, 16), half_matrix(16, 8, 16)}, 16);
  lanes.caps.features.lane_fragments = true;
  return {
      fake("nvidia", DeviceType::kDiscrete, 32, 49152,
           {half_matrix(16, 8, 8), half_matrix(16, 16, 16, ScalarType::kF16),
            half_matrix(16, 16, 16), half_matrix(16, 8, 16)},
           16),
      fake("nvidia, old", DeviceType::kDiscrete, 32, 49152, {}, 0),
      fake("amd wave64", DeviceType::kDiscrete, 64, 65536, {half_matrix(16, 16, 16)}, 16),
      fake("amd wave32", DeviceType::kDiscrete, 32, 65536, {half_matrix(16, 16, 16)}, 16),
      fake("intel", DeviceType::kDiscrete, 16, 65536, {half_matrix(8, 16, 16)}, 8),
      fake("matrices of halves only", DeviceType::kIntegrated, 32, 32768,
           {half_matrix(16, 16, 16, ScalarType::kF16)}, 0),
      fake("smallest", DeviceType::kIntegrated, 16, 16384, {}, 0),
      fake("lavapipe 256", DeviceType::kCpu, 8, 32768, {half_matrix(8, 8, 8)}, 0),
      fake("lavapipe 128", DeviceType::kCpu, 4, 32768, {}, 0),
      lanes,
  };
}

const AttentionBucket kDecode{
    .rows = 64, .sequences = 64, .sequence_rows = 1, .sequence_tokens = 4096};
const AttentionBucket kShortDecode{
    .rows = 8, .sequences = 8, .sequence_rows = 1, .sequence_tokens = 191};
const AttentionBucket kMixed{
    .rows = 2048, .sequences = 64, .sequence_rows = 2048, .sequence_tokens = 4096};

std::vector<AttentionShape> shapes(const AttentionBucket& bucket) {
  std::vector<AttentionShape> all;
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0})
    for (const uint32_t head_size : {32u, 64u, 80u, 96u, 128u, 256u})
      for (const auto& [heads, kv_heads] :
           {std::pair{32u, 8u}, {32u, 32u}, {28u, 4u}, {16u, 1u}, {9u, 3u}})
        all.push_back({.kv = kv,
                       .heads = heads,
                       .kv_heads = kv_heads,
                       .head_size = head_size,
                       .bucket = bucket});
  return all;
}

// With a known fragment layout, single tokens of some head sizes use attention_direct, and prompts
// of some more use attention_lanes.
std::string few_kernel(const DeviceCaps& caps, const AttentionShape& shape) {
  if (caps.type == DeviceType::kCpu) return "attention_subgroup.";
  const bool direct = caps.features.lane_fragments && shape.heads / shape.kv_heads <= 8 &&
                      (shape.head_size == 64 || shape.head_size == 128);
  return direct ? "attention_direct." : "attention_rows.";
}
std::string many_kernel(const DeviceCaps& caps, const AttentionShape& shape) {
  const bool lanes = caps.features.lane_fragments && shape.head_size != 80 && shape.head_size < 256;
  return lanes ? "attention_lanes." : "attention_tile.";
}

TEST(AttentionChoice, Table) {
  for (const AttentionDevice& device : devices()) {
    for (const AttentionShape& shape : shapes(kMixed)) {
      const std::string kv(kv_format_name(shape.kv));
      const AttentionPlan plan = choose_attention(device.caps, shape);
      EXPECT_EQ(plan.few.pipeline.kernel, few_kernel(device.caps, shape) + kv) << device.name;
      ASSERT_EQ(plan.many.has_value(), device.matrix_rows > 0) << device.name;
      if (plan.many) {
        EXPECT_EQ(plan.many->pipeline.kernel, many_kernel(device.caps, shape) + kv);
        if (plan.many->pipeline.kernel.starts_with("attention_lanes")) {
          EXPECT_EQ(plan.many->pipeline.constants["kSubgroups"],
                    shape.kv == KvFormat::kF16 ? 4u : 8u);
        }
        EXPECT_EQ(plan.many->pipeline.constants["kM"], device.matrix_rows) << device.name;
      }
    }
    for (const AttentionShape& shape : shapes(kDecode)) {
      const AttentionPlan plan = choose_attention(device.caps, shape);
      EXPECT_TRUE(plan.few.pipeline.kernel.starts_with(few_kernel(device.caps, shape)));
      EXPECT_FALSE(plan.many) << device.name;
    }
  }
}

// Trees are in the list that the general kernel of a device computes; prompts keep theirs.
TEST(AttentionChoice, TreesUseTheGeneralKernels) {
  AttentionBucket trees = kMixed;
  trees.trees = true;
  for (const AttentionDevice& device : devices()) {
    for (const bool deterministic : {false, true}) {
      for (const AttentionShape& shape : shapes(trees)) {
        const std::string kv(kv_format_name(shape.kv));
        const bool cpu = device.caps.type == DeviceType::kCpu;
        const AttentionPlan plan = choose_attention(device.caps, shape, deterministic);
        EXPECT_EQ(plan.few.pipeline.kernel,
                  (cpu ? "attention_subgroup_tree." : "attention_rows_tree.") + kv)
            << device.name;
        EXPECT_EQ(plan.few.groups.x, plan.capacity.few);
        EXPECT_FALSE(plan.ropes);
        AttentionShape plain = shape;
        plain.bucket.trees = false;
        const AttentionPlan without = choose_attention(device.caps, plain, deterministic);
        ASSERT_EQ(plan.many.has_value(), without.many.has_value()) << device.name;
        if (plan.many) {
          EXPECT_EQ(plan.many->pipeline, without.many->pipeline) << device.name;
        }
        // With the same tiles and splits a chain has the same bits as ordinary rows.
        if (deterministic) {
          EXPECT_EQ(plan.tuning, without.tuning) << device.name;
          EXPECT_EQ(plan.few.pipeline.constants, without.few.pipeline.constants) << device.name;
        }
      }
    }
  }
}

// A step of an 8B model with `rows` tokens per sequence.
AttentionShape large_model(uint32_t sequences, uint32_t tokens, KvFormat kv, uint32_t rows) {
  return {.kv = kv,
          .heads = 32,
          .kv_heads = 8,
          .head_size = 128,
          .bucket = {.rows = sequences * rows,
                     .sequences = sequences,
                     .sequence_rows = rows,
                     .sequence_tokens = tokens}};
}

// The code of attention_direct is long, which slows down a step of one token.
TEST(AttentionChoice, OneStreamUsesTheShorterKernelOverShortContexts) {
  DeviceCaps caps = devices().front().caps;
  caps.features.lane_fragments = true;
  const auto direct = [&](KvFormat kv, uint32_t sequences, uint32_t tokens, uint32_t rows = 1) {
    return choose_attention(caps, large_model(sequences, tokens, kv, rows))
        .few.pipeline.kernel.starts_with("attention_direct");
  };
  EXPECT_FALSE(direct(KvFormat::kF16, 1, 767));
  EXPECT_TRUE(direct(KvFormat::kF16, 1, 768));
  EXPECT_FALSE(direct(KvFormat::kQ8_0, 1, 767));
  EXPECT_TRUE(direct(KvFormat::kQ8_0, 1, 768));
  EXPECT_TRUE(direct(KvFormat::kF16, 2, 767));
  EXPECT_TRUE(direct(KvFormat::kQ8_0, 2, 767));
  EXPECT_TRUE(direct(KvFormat::kF16, 1, 767, 128));  // a prompt's list of single tokens
  AttentionShape small_heads = large_model(1, 767, KvFormat::kF16, 1);
  small_heads.head_size = 64;
  EXPECT_TRUE(
      choose_attention(caps, small_heads).few.pipeline.kernel.starts_with("attention_direct"));
}

// Guesses to verify: a prompt's kernel would have too few tiles for them.
TEST(AttentionChoice, FewRowsOverShortContextsAreTilesOfOneToken) {
  const DeviceCaps caps = devices().back().caps;
  const auto one_token_tiles = [](const DeviceCaps& device, const AttentionShape& shape) {
    return !choose_attention(device, shape).many;
  };
  const auto rows = [](uint32_t sequences, uint32_t each, uint32_t tokens) {
    return large_model(sequences, tokens, KvFormat::kF16, each);
  };
  EXPECT_TRUE(one_token_tiles(caps, rows(1, 16, 767)));
  EXPECT_TRUE(one_token_tiles(caps, rows(1, 64, 767)));
  EXPECT_TRUE(one_token_tiles(caps, rows(8, 8, 767)));
  EXPECT_FALSE(one_token_tiles(caps, rows(1, 72, 767)));
  EXPECT_FALSE(one_token_tiles(caps, rows(8, 16, 767)));
  EXPECT_TRUE(one_token_tiles(caps, rows(1, 36, 3071)));
  EXPECT_FALSE(one_token_tiles(caps, rows(1, 40, 3071)));
  EXPECT_FALSE(one_token_tiles(caps, rows(1, 2, 3072)));
  const auto quantized = [](uint32_t each, uint32_t tokens) {
    return large_model(1, tokens, KvFormat::kQ8_0, each);
  };
  EXPECT_TRUE(one_token_tiles(caps, quantized(16, 767)));
  EXPECT_FALSE(one_token_tiles(caps, quantized(20, 767)));
  EXPECT_FALSE(one_token_tiles(caps, quantized(16, 768)));

  const AttentionShape guesses = rows(1, 16, 767);
  const AttentionPlan plan = choose_attention(caps, guesses);
  EXPECT_EQ(plan.few.pipeline.kernel, "attention_direct.f16");
  EXPECT_EQ(plan.tuning.few_tokens, 1u);
  EXPECT_GE(plan.capacity.few, 16u);
  EXPECT_EQ(plan.few.pipeline.constants["kSubgroups"], 8u);
  EXPECT_FALSE(plan.ropes) << "a token's keys are read by those after it";
  const AttentionPlan many = choose_attention(caps, rows(8, 8, 767));
  EXPECT_EQ(many.few.pipeline.constants["kSubgroups"], 2u) << "as for 64 sequences";

  AttentionShape other = guesses;
  other.head_size = 96;
  EXPECT_FALSE(one_token_tiles(caps, other)) << "attention_direct does not have such heads";
  other = guesses;
  other.dealt = true;
  EXPECT_FALSE(one_token_tiles(caps, other));
  other = guesses;
  other.bucket.trees = true;
  EXPECT_FALSE(one_token_tiles(caps, other));
  DeviceCaps unmeasured = caps;
  unmeasured.device_id = 0x2684;  // an RTX 4090
  EXPECT_FALSE(one_token_tiles(unmeasured, guesses));
}

// Scores become weights in place only on devices whose matrix units have f16 sums of that size.
TEST(AttentionChoice, DirectWeightsNeedHalfSums) {
  const CoopmatShape sums = half_matrix(16, 16, 16);
  const auto direct = [&](const std::vector<CoopmatShape>& matrices) {
    const AttentionDevice device = fake("", DeviceType::kDiscrete, 32, 49152, matrices, 16);
    const AttentionShape shape{.heads = 32, .kv_heads = 8, .head_size = 128, .bucket = kMixed};
    return choose_attention(device.caps, shape).many->pipeline.constants["kDirect"];
  };
  EXPECT_EQ(direct({half_matrix(16, 16, 16, ScalarType::kF16), sums}), 1u);
  EXPECT_EQ(direct({half_matrix(16, 8, 16, ScalarType::kF16), sums}), 0u);
  EXPECT_EQ(direct({sums}), 0u);
}

TEST(AttentionChoice, PlansMeetTheKernelsRequirements) {
  for (const AttentionDevice& device : devices()) {
    const DeviceCaps& caps = device.caps;
    for (const AttentionBucket& bucket : {kDecode, kMixed}) {
      for (const AttentionShape& shape : shapes(bucket)) {
        const AttentionPlan plan = choose_attention(caps, shape);
        const KernelConstants& c = plan.few.pipeline.constants;
        EXPECT_EQ(plan.few.pipeline.subgroup_size, caps.subgroup_size);
        const uint32_t group = shape.heads / shape.kv_heads;
        if (caps.type == DeviceType::kCpu) {
          EXPECT_EQ(c.workgroup_size(), caps.subgroup_size) << "one subgroup, no barrier";
          EXPECT_GE(plan.few.groups.y * c["kRows"],
                    shape.kv_heads * plan.tuning.few_tokens * group);
        } else {
          EXPECT_EQ(c.workgroup_size(), c["kSubgroupSize"] * c["kSubgroups"]);
          EXPECT_EQ(c["kSubgroupSize"], caps.subgroup_size);
          EXPECT_LE(c.workgroup_size(), caps.limits.max_group_invocations);
          EXPECT_TRUE(std::has_single_bit(c["kStreamLanes"]) &&
                      c["kStreamLanes"] <= caps.subgroup_size)
              << "lanes";
          EXPECT_EQ(params::kTokensPerBlock % c["kRun"], 0u) << "run";
          EXPECT_LE((c["kSubgroups"] * (shape.head_size + 2) + shape.head_size) * c["kRows"] * 4,
                    caps.limits.max_shared_bytes);
          EXPECT_GE(plan.few.groups.y * c["kRows"],
                    shape.kv_heads * plan.tuning.few_tokens * group);
        }
        if (!plan.many) continue;
        const KernelConstants& t = plan.many->pipeline.constants;
        EXPECT_EQ(t.workgroup_size(), t["kSubgroupSize"] * t["kSubgroups"]);
        EXPECT_EQ(t["kSubgroupSize"] % t["kM"], 0u) << "lanes of a row";
        EXPECT_EQ(shape.head_size % t["kN"], 0u);
        EXPECT_EQ(shape.head_size % t["kK"], 0u);
        EXPECT_EQ(t["kKeys"] % params::kTokensPerBlock, 0u);
        EXPECT_EQ(t["kKeys"] % (8 * t["kSubgroupSize"] / t["kM"]), 0u) << "keys of a lane";
        EXPECT_LE(plan.tuning.many_tokens * group, t["kSubgroups"] * t["kM"]) << "rows of a tile";
      }
    }
  }
}

// A prompt of one request, or its newest token with guesses behind it, is no work for the other
// list.
TEST(AttentionChoice, OneSequenceOfSeveralRowsHasOneList) {
  const DeviceCaps caps =
      testing::with_matrices(testing::fake_devices().front().caps, {testing::half_fragments()});
  AttentionShape shape{
      .heads = 32,
      .kv_heads = 8,
      .head_size = 128,
      .bucket = {.rows = 16, .sequences = 1, .sequence_rows = 16, .sequence_tokens = 4096}};
  const AttentionPlan one = choose_attention(caps, shape);
  EXPECT_EQ(one.capacity.few, 0u);
  EXPECT_TRUE(one.many);
  shape.bucket.sequences = 2;
  const AttentionPlan two = choose_attention(caps, shape);
  EXPECT_GT(two.capacity.few, 0u);
  EXPECT_TRUE(two.many);
  shape.bucket.sequences = 1;
  shape.bucket.trees = true;
  EXPECT_GT(choose_attention(caps, shape).capacity.few, 0u);
}

TEST(AttentionChoice, DeterministicIsOneKernelForEveryBucket) {
  for (const AttentionDevice& device : devices()) {
    const auto decode = shapes(kDecode), mixed = shapes(kMixed);
    for (size_t i = 0; i < decode.size(); ++i) {
      const AttentionPlan a = choose_attention(device.caps, decode[i], true);
      const AttentionPlan b = choose_attention(device.caps, mixed[i], true);
      EXPECT_EQ(a.few.pipeline, b.few.pipeline) << device.name;
      EXPECT_EQ(a.tuning, b.tuning) << device.name;
      EXPECT_FALSE(b.many) << device.name;
      EXPECT_EQ(b.tuning.few_tokens, 1u) << device.name;
      EXPECT_TRUE(b.tuning.fixed_splits) << device.name;
    }
  }
}

TEST(AttentionChoice, F32AttentionAvoidsMatrixUnits) {
  for (const AttentionDevice& device : devices()) {
    for (AttentionShape shape : shapes(kMixed)) {
      shape.f32_only = true;
      const AttentionPlan plan = choose_attention(device.caps, shape);
      EXPECT_FALSE(plan.many || plan.few.pipeline.kernel.starts_with("attention_direct"))
          << device.name;
    }
  }
}

TEST(AttentionChoice, FormsOfTheResult) {
  for (const AttentionDevice& device : devices()) {
    for (const AttentionShape& shape : shapes(kDecode)) {
      const AttentionPlan plan = choose_attention(device.caps, shape);
      const bool cpu = device.caps.type == DeviceType::kCpu;
      EXPECT_EQ(plan.writes_halves, !cpu) << device.name;
    }
  }
}

TEST(AttentionChoice, ShortBucketsAreNotSplit) {
  for (const AttentionDevice& device : devices()) {
    const AttentionPlan plan = choose_attention(
        device.caps,
        {.heads = 8,
         .kv_heads = 2,
         .head_size = 64,
         .bucket = {.rows = 8, .sequences = 8, .sequence_rows = 1, .sequence_tokens = 191}});
    EXPECT_EQ(plan.capacity, (AttentionCapacity{.few = 8})) << device.name;
  }
}

// How a workgroup goes over the keys of an item, for different steps of an 8B model.
TEST(AttentionChoice, LoopOverAnItemsKeys) {
  struct Pace {
    uint32_t subgroups, run, overlap;
    bool operator==(const Pace&) const = default;
  };
  AttentionDevice nvidia = devices()[0];
  const auto pace = [&](uint32_t sequences, uint32_t tokens, KvFormat kv = KvFormat::kF16,
                        uint32_t rows = 1) {
    const KernelConstants c =
        choose_attention(nvidia.caps, large_model(sequences, tokens, kv, rows))
            .few.pipeline.constants;
    return Pace{c["kSubgroups"], c["kRun"], c["kDoubleBuffer"]};
  };
  EXPECT_EQ(pace(1, 767), (Pace{8, 2, 1}));
  EXPECT_EQ(pace(16, 767), (Pace{8, 2, 1}));
  EXPECT_EQ(pace(24, 767), (Pace{4, 2, 1}));
  EXPECT_EQ(pace(64, 767), (Pace{2, 4, 1}));
  EXPECT_EQ(pace(256, 191), (Pace{2, 4, 1}));
  EXPECT_EQ(pace(1, 3071), (Pace{8, 2, 0}));
  EXPECT_EQ(pace(64, 3071), (Pace{8, 2, 0}));
  EXPECT_EQ(pace(1, 191, KvFormat::kF16, 128), (Pace{4, 4, 0}));
  EXPECT_EQ(pace(1, 191, KvFormat::kQ8_0), (Pace{4, 8, 0}));
  EXPECT_EQ(pace(64, 191, KvFormat::kQ8_0), (Pace{2, 8, 0}));
  EXPECT_EQ(pace(64, 3071, KvFormat::kQ8_0), (Pace{8, 8, 0}));
  nvidia = devices().back();
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
    EXPECT_EQ(pace(2, 767, kv), (Pace{8, 16, 1}));
    EXPECT_EQ(pace(32, 767, kv), (Pace{4, 16, 1}));
    EXPECT_EQ(pace(64, 767, kv), (Pace{2, 16, 1}));
    EXPECT_EQ(pace(256, 767, kv), (Pace{1, 16, 1}));
    EXPECT_EQ(pace(2, 3071, kv), (Pace{4, 16, 1}));
    EXPECT_EQ(pace(64, 3071, kv), (Pace{kv == KvFormat::kF16 ? 2u : 4u, 16, 1}));
  }
  EXPECT_EQ(pace(1, 3071, KvFormat::kQ8_0), (Pace{4, 16, 1}));
}

// On a GPU, attention applies rope to single tokens itself, if one workgroup has all heads of a KV
// head.
TEST(AttentionChoice, Ropes) {
  for (const AttentionDevice& device : devices()) {
    for (const AttentionShape& shape : shapes(kDecode)) {
      const AttentionPlan plan = choose_attention(device.caps, shape);
      const bool one_group = plan.few.groups.y == shape.kv_heads;
      EXPECT_EQ(plan.ropes, device.caps.type != DeviceType::kCpu && one_group) << device.name;
      // AMD's GCN, with nothing but subgroups of 64, has registers for two heads.
      const uint32_t heads = device.caps.min_subgroup_size < 64 ? 4 : 2;
      if (shape.heads / shape.kv_heads <= heads && shape.head_size <= 128) {
        EXPECT_TRUE(one_group) << device.name;
      }
      EXPECT_FALSE(choose_attention(device.caps, shape, true).ropes) << device.name;
    }
    for (const AttentionShape& shape : shapes(kMixed))
      EXPECT_FALSE(choose_attention(device.caps, shape).ropes) << device.name;
  }
}

// AMD's GCN, with nothing but subgroups of 64, has no registers for that.
TEST(AttentionChoice, LoadsKeysAheadWhereThereAreRegisters) {
  const AttentionShape shape{.heads = 32, .kv_heads = 8, .head_size = 128, .bucket = kShortDecode};
  int devices_with_rows = 0;
  for (const AttentionDevice& device : devices()) {
    const PipelineInfo few = choose_attention(device.caps, shape).few.pipeline;
    if (!few.kernel.starts_with("attention_rows")) continue;
    ++devices_with_rows;
    EXPECT_EQ(few.constants["kDoubleBuffer"], device.caps.min_subgroup_size < 64 ? 1u : 0u)
        << device.name;
  }
  EXPECT_GT(devices_with_rows, 1);
}

// Compiling is slow, and a model runs steps of many sizes.
TEST(AttentionChoice, StepsOfManySizesShareAPipeline) {
  const AttentionDevice nvidia = devices()[0];
  const Buffer qkv = Buffer::of_any_size();
  const auto pipeline = [&](uint32_t rows, uint32_t parts, bool values_apart) {
    const AttentionShape shape{
        .heads = 32,
        .kv_heads = 8,
        .head_size = 128,
        .bucket = {.rows = rows, .sequences = rows, .sequence_rows = 1, .sequence_tokens = 3071}};
    const AttentionPlan plan = choose_attention(nvidia.caps, shape);
    const uint32_t padded = (rows + 15) / 16 * 16;
    RopeKv rope;
    rope.shape = {.rows = rows, .heads = 32, .kv_heads = 8, .head_size = 128, .rope_dims = 128};
    rope.shape.parts = parts;
    rope.shape.partial_stride = padded * 6144;
    const BufferSlice all = qkv.slice(0, uint64_t{parts} * padded * 6144 * 4);
    use_fused_qkv(rope, all);
    if (values_apart) {
      rope.q.stride = rope.k.stride = 5120;
      rope.v = {.slice = all.slice(uint64_t{rows} * 5120 * 4, uint64_t{rows} * 1024 * 4)};
    }
    Attention op;
    op.shape = shape;
    op.rope = &rope;
    return attention_pipeline(plan.few, op);
  };
  for (const auto& [parts, apart] : {std::pair{1u, false}, {4u, false}, {1u, true}}) {
    const PipelineInfo first = pipeline(9, parts, apart);
    for (uint32_t rows = 10; rows <= 64; ++rows)
      EXPECT_EQ(pipeline(rows, parts, apart), first) << rows << " rows, " << parts << " parts";
  }
  EXPECT_EQ(pipeline(1, 1, true), pipeline(1, 1, false)) << "one row, whatever the product";
}

}  // namespace
}  // namespace hearth
