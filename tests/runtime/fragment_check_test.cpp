#include "runtime/fragment_check.h"

#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

using FragmentCheckTest = GpuTest;

// What a device does not have it does not get, and asking again changes nothing.
TEST_F(FragmentCheckTest, NeedsTheFragments) {
  const DeviceFeatures before = device().caps().features;
  ASSERT_OK(check_fragments(device(), pipelines()));
  EXPECT_EQ(device().caps().features, before);
  if (!before.coopmat || device().caps().subgroup_size != 32) {
    EXPECT_FALSE(before.lane_fragments);
  }
}

}  // namespace
}  // namespace hearth::testing
