#include "runtime/kernel_constants.h"

#include <bit>
#include <vector>

#include <gtest/gtest.h>

#include "params/rms_norm.h"
#include "params/rope_kv.h"
#include "runtime/pipeline.h"
#include "runtime/pipeline_collector.h"

// Like a header of shaders/params.
HEARTH_CONSTANTS(TestKernel)
HEARTH_WORKGROUP_SIZE
HEARTH_UINT(1, kRows, 4)
HEARTH_UNUSED(2, kGone, 7)
HEARTH_OPTIONAL_FROM(3)
HEARTH_UINT(3, kExtra, 5)
HEARTH_FLOAT(4, kScale, 0.5f)
HEARTH_CONSTANTS_END

namespace hearth::testing {
namespace {

using Constants = params::TestKernelConstants;

std::vector<uint32_t> words_of(const KernelConstants& constants) {
  return {constants.words().begin(), constants.words().end()};
}

TEST(KernelConstants, ArePassedInTheOrderOfTheirIds) {
  const KernelConstants constants = Constants{.kWorkgroupSize = 64, .kRows = 2};
  EXPECT_EQ(words_of(constants), (std::vector<uint32_t>{64, 2, 7}));
  EXPECT_EQ(constants.workgroup_size(), 64u);
}

TEST(KernelConstants, OptionalOnesArePassedOnceTheyAreSet) {
  const uint32_t half = std::bit_cast<uint32_t>(0.5f), two = std::bit_cast<uint32_t>(2.0f);
  KernelConstants constants = Constants{.kWorkgroupSize = 64};
  constants.set("kScale", 2.0f);
  EXPECT_EQ(words_of(constants), (std::vector<uint32_t>{64, 4, 7, 5, two}));
  EXPECT_EQ(words_of(Constants{.kExtra = 6}), (std::vector<uint32_t>{1, 4, 7, 6}));
  EXPECT_EQ(constants, KernelConstants(Constants{.kWorkgroupSize = 64, .kScale = 2.0f}));
  EXPECT_NE(constants, KernelConstants(Constants{.kWorkgroupSize = 64}));
  EXPECT_EQ(KernelConstants(Constants{})["kScale"], half) << "the default";
}

TEST(KernelConstants, AreKnownByName) {
  KernelConstants constants = Constants{.kRows = 9};
  EXPECT_EQ(constants["kRows"], 9u);
  constants.set("kRows", 3u);
  EXPECT_EQ(constants["kRows"], 3u);
  EXPECT_TRUE(constants.has("kExtra"));
  EXPECT_FALSE(constants.has("kColumns"));
  EXPECT_FALSE(KernelConstants::unnamed({1, 2}).has("kRows"));
}

// A constant that a kernel does not have would otherwise be left out without a word.
TEST(KernelConstants, NoPipelineIsMadeWithAnUnknownOne) {
  PipelineCollector pipelines;
  PipelineInfo info{.kernel = "test_kernel", .constants = Constants{}};
  info.constants.set("kRows", 2u);
  EXPECT_TRUE(pipelines.get(info).ok());
  info.constants.set("kColumns", 2u);
  info.constants.set("kDepth", 2u);
  const auto pipeline = pipelines.get(info);
  ASSERT_FALSE(pipeline.ok());
  EXPECT_EQ(pipeline.error().message, "kernel 'test_kernel' has no constant 'kColumns'");
}

// Two pipelines are one if their constants are.
TEST(KernelConstants, TellPipelinesApart) {
  const PipelineInfo info{.kernel = "rms_norm",
                          .constants = params::RmsNormConstants{.kWorkgroupSize = 64}};
  PipelineInfo other = info;
  EXPECT_EQ(info, other);
  other.constants.set("kWriteScales", 1u);
  EXPECT_NE(info, other);
  EXPECT_TRUE(info < other);
}

}  // namespace
}  // namespace hearth::testing
