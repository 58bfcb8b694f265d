// The choice of sampling kernels for devices we do not have.
#include <gtest/gtest.h>

#include "engine/ops/sampling.h"
#include "params/sampling.h"
#include "tests/support/fake_devices.h"

namespace hearth {
namespace {

using testing::fake_devices;
using testing::FakeDevice;

const std::vector<FakeDevice> kSamplingDevices = fake_devices();

TEST(SamplingChoice, ChunksCoverTheVocabularyAndFitTheirSums) {
  for (const FakeDevice& device : kSamplingDevices) {
    for (const uint32_t vocab : {1u, 7u, 1000u, 32000u, 128256u, 262144u, 262208u}) {
      const SamplingPlan plan = choose_sampling(device.caps, {3, vocab});
      const KernelConstants& constants = plan.scan.pipeline.constants;
      const uint32_t tiles = constants["kLaneSegments"], parts = constants["kSegmentLanes"],
                     lanes = constants.workgroup_size() / parts;
      const uint32_t chunk = lanes * tiles * params::kSegmentQuads * 4;
      EXPECT_EQ(lanes * parts, constants.workgroup_size()) << device.name;
      EXPECT_EQ(params::kSegmentQuads % parts, 0u) << device.name;
      EXPECT_TRUE(parts == 1 || tiles == 1) << device.name;
      EXPECT_LE(constants.workgroup_size(), device.caps.limits.max_group_invocations)
          << device.name;
      EXPECT_LE(constants.workgroup_size() * 4 + 3072, device.caps.limits.max_shared_bytes)
          << device.name;
      EXPECT_EQ(plan.chunk_tokens, chunk) << device.name;
      EXPECT_GE(chunk, 1024u) << device.name << ": a block would be in three chunks";
      EXPECT_LE(chunk, 8191u) << device.name << ": the sums of sample_scan would overflow";
      EXPECT_GE(plan.chunks * chunk, vocab) << device.name;
      EXPECT_LT((plan.chunks - 1) * chunk, vocab) << device.name << ": an idle workgroup";
      EXPECT_EQ(plan.segments, plan.chunks * lanes * tiles) << device.name;
      EXPECT_EQ(plan.scan.groups.x, plan.chunks) << device.name;
      EXPECT_EQ(plan.scan.groups.y, 3u) << device.name;
      EXPECT_EQ(plan.pick->groups.y, 3u) << device.name;
      EXPECT_EQ(plan.pick->pipeline.constants["kScanLanes"], lanes)
          << device.name << ": segments would be misread";
      EXPECT_GE(plan.chunk_bytes, 3ull * plan.chunks * sizeof(params::SamplingChunk));
      EXPECT_GE(plan.segment_bytes, 3ull * plan.segments * 4);
      EXPECT_EQ(plan.tally_words > 0, plan.pick->groups.x > 1) << device.name;
      EXPECT_GE(plan.tally_bytes, 3ull * plan.tally_words * 4) << device.name;
    }
  }
}

// The same chunks, so that a log-probability is the same, to the last bit, in a batch that is not
// all greedy.
TEST(SamplingChoice, GreedyRowsAreScannedLikeOthersAndNotPicked) {
  for (const FakeDevice& device : kSamplingDevices) {
    for (const uint32_t rows : {1u, 64u}) {
      const SamplingPlan plan = choose_sampling(device.caps, {rows, 128256});
      const SamplingPlan greedy =
          choose_sampling(device.caps, {.rows = rows, .vocab = 128256, .greedy = true});
      EXPECT_FALSE(greedy.pick) << device.name;
      EXPECT_EQ(greedy.chunk_tokens, plan.chunk_tokens) << device.name;
      EXPECT_EQ(greedy.scan.groups.x, plan.scan.groups.x) << device.name;
      EXPECT_EQ(greedy.scan.pipeline.constants["kPickGreedy"], 1u) << device.name;
      EXPECT_EQ(plan.scan.pipeline.constants["kPickGreedy"], 0u) << device.name;
      EXPECT_LE(greedy.scratch_bytes(), plan.scratch_bytes()) << device.name;
    }
  }
}

TEST(SamplingChoice, TablesFitIntoSharedMemoryAndAreLargeEnough) {
  for (const FakeDevice& device : kSamplingDevices) {
    const SamplingPlan plan = choose_sampling(device.caps, {1, kMaxSamplingVocab});
    const KernelConstants& constants = plan.pick->pipeline.constants;
    const uint32_t lanes = constants.workgroup_size(), bins = constants["kBins"],
                   tokens = constants["kListTokens"];
    EXPECT_LE(bins * 8 + tokens * 8 + 1024 + 4, device.caps.limits.max_shared_bytes) << device.name;
    EXPECT_LE(lanes, tokens) << device.name;
    EXPECT_LE(tokens, bins) << device.name;
    EXPECT_GE(bins, 256u) << device.name << ": for blocks, and for vec4 of a block";
    EXPECT_LE((kMaxSamplingVocab + bins - 1) / bins, tokens) << device.name << ": a bin of ids";
    EXPECT_GE(tokens, params::kMaxTopLogprobs) << device.name;
    EXPECT_EQ(lanes % device.caps.subgroup_size, 0u) << device.name;
    EXPECT_LE(lanes, device.caps.limits.max_group_invocations) << device.name;
  }
}

TEST(SamplingChoice, TablesOfStagesFitIntoSharedMemory) {
  for (const FakeDevice& device : kSamplingDevices) {
    const SamplingPlan plan =
        choose_sampling(device.caps, {.rows = 64, .vocab = 128256, .stages = true});
    const KernelConstants& constants = plan.stages->pipeline.constants;
    const uint32_t lanes = constants.workgroup_size(), bins = constants["kBins"],
                   tokens = constants["kListTokens"];
    // Beside the tables: values of up to 256 subgroups.
    EXPECT_LE(bins * 8 + tokens * 8 + 5120 + 64, device.caps.limits.max_shared_bytes)
        << device.name;
    EXPECT_LE(lanes, tokens) << device.name;
    EXPECT_LE(tokens, bins) << device.name << ": for the running sums of the list";
    EXPECT_GE(plan.chunk_bytes,
              64ull * plan.chunks * (sizeof(params::SamplingChunk) + sizeof(params::SamplingSums)))
        << device.name;
  }
}

TEST(SamplingChoice, CpuDevicesGetWorkgroupsOfOneSubgroup) {
  for (const FakeDevice& device : kSamplingDevices) {
    const SamplingPlan plan = choose_sampling(device.caps, {4, 32000});
    if (!device.cpu()) continue;
    EXPECT_EQ(plan.scan.pipeline.constants.workgroup_size(), device.caps.subgroup_size)
        << device.name;
    EXPECT_EQ(plan.pick->pipeline.constants.workgroup_size(), device.caps.subgroup_size)
        << device.name;
  }
}

// This makes a row's sums the same, too.
TEST(SamplingChoice, ChunksAreTheSameForAnyNumberOfRows) {
  for (const FakeDevice& device : kSamplingDevices) {
    const SamplingPlan one = choose_sampling(device.caps, {1, 128256});
    const SamplingPlan many = choose_sampling(device.caps, {256, 128256});
    EXPECT_EQ(one.chunk_tokens, many.chunk_tokens) << device.name;
    EXPECT_EQ(one.pick->pipeline, many.pick->pipeline) << device.name;
    EXPECT_EQ(one.chunks, many.chunks) << device.name;
  }
}

// A single row gets more lanes.
TEST(SamplingChoice, FewRowsDivideTheirSegments) {
  for (const FakeDevice& device : kSamplingDevices) {
    const auto parts = [&](uint32_t rows) {
      return choose_sampling(device.caps, {rows, 128256}).scan.pipeline.constants["kSegmentLanes"];
    };
    EXPECT_EQ(parts(64), 1u) << device.name;
    EXPECT_EQ(parts(1) > 1, !device.cpu() && device.caps.limits.max_group_invocations >= 256)
        << device.name;
  }
}

// Many rows give enough workgroups.
TEST(SamplingChoice, WorkgroupsThatShareTheFirstPass) {
  for (const FakeDevice& device : kSamplingDevices) {
    const auto shares = [&](uint32_t rows) {
      return choose_sampling(device.caps, {rows, 128256}).pick->groups.x;
    };
    EXPECT_EQ(shares(1), device.cpu() ? 4u : 8u) << device.name;
    EXPECT_EQ(shares(4), device.cpu() ? 1u : 8u) << device.name;
    EXPECT_LE(shares(64), shares(16)) << device.name;
    EXPECT_EQ(shares(1024), 1u) << device.name;
  }
}

}  // namespace
}  // namespace hearth
