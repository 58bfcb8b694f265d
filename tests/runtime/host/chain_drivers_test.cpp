#include "runtime/chain_drivers.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr uint32_t kNvidiaVendor = 0x10de;

struct ChainDriverCase {
  DriverId driver;
  bool chains;
};

TEST(ChainDrivers, OnlyNvidiasOwnDriverMayChain) {
  constexpr ChainDriverCase kCases[] = {
      {DriverId::kNvidia, true},    {DriverId::kNvk, false},      {DriverId::kRadv, false},
      {DriverId::kAmd, false},      {DriverId::kIntel, false},    {DriverId::kIntelMesa, false},
      {DriverId::kMoltenVk, false}, {DriverId::kLavapipe, false}, {DriverId::kOther, false}};
  for (const ChainDriverCase& wanted : kCases) {
    DeviceCaps caps;
    caps.vendor_id = kNvidiaVendor;  // the vendor alone says nothing
    caps.driver_id = wanted.driver;
    caps.features.memory_model_chains = true;
    EXPECT_EQ(may_chain(caps), wanted.chains) << static_cast<int>(wanted.driver);
  }
}

TEST(ChainDrivers, ChainsNeedAvailabilityAndVisibilityChains) {
  DeviceCaps caps;
  caps.driver_id = DriverId::kNvidia;
  EXPECT_FALSE(may_chain(caps));
}

}  // namespace
}  // namespace hearth
