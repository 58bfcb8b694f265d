#include "runtime/chain_check.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "runtime/chain_guard.h"
#include "runtime/faults.h"
#include "runtime/log.h"
#include "tests/support/chained_device.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ChainCheckTest = GpuTest;

TEST_F(ChainCheckTest, ChainsThatWorkStayOn) {
  ASSERT_ASSIGN(const ChainedDevice chained, ChainedDevice::open());
  if (chained.device->caps().driver_id != DriverId::kLavapipe &&
      !device().caps().features.ordered_groups)
    GTEST_SKIP() << "this driver is not known to run chains";
  ASSERT_OK(check_chain(*chained.device, *chained.pipelines));
  EXPECT_TRUE(chained.device->chain().usable());
  EXPECT_TRUE(chained.device->caps().features.ordered_groups);
}

// Every wait is bounded, so this test ends at all.
TEST_F(ChainCheckTest, AWaitThatNeverEndsTurnsChainsOff) {
  for (const int n : {1, 20}) {
    ASSERT_ASSIGN(const ChainedDevice chained, ChainedDevice::open());
    std::vector<std::string> lines;
    const ScopedLogSink sink([&](std::string_view line) { lines.emplace_back(line); });
    chained.device->faults().chain.arm(n);
    ASSERT_OK(check_chain(*chained.device, *chained.pipelines));
    EXPECT_FALSE(chained.device->faults().chain.pending());
    EXPECT_FALSE(chained.device->chain().usable());
    EXPECT_FALSE(chained.device->caps().features.ordered_groups);
    EXPECT_THAT(lines, ElementsAre(HasSubstr("barriers")));
    // Nothing is chained from now on.
    ASSERT_ASSIGN(CommandRecorder recorder,
                  CommandRecorder::begin(*chained.device, {.chained = true}));
    ASSERT_ASSIGN(const CommandBuffer commands, recorder.finish());
    ASSERT_OK(chained.device->compute().run(commands));
  }
}

TEST_F(ChainCheckTest, DevicesWithoutChainsAreNotTested) {
  if (device().caps().features.ordered_groups) GTEST_SKIP() << "this device has chains";
  const DeviceFeatures before = device().caps().features;
  ASSERT_OK(check_chain(device(), pipelines()));
  EXPECT_EQ(device().caps().features, before);
  EXPECT_FALSE(device().chain().is_open());
}

}  // namespace
}  // namespace hearth::testing
