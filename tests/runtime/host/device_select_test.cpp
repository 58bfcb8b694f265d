#include "runtime/device_select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::HasSubstr;

DeviceCaps usable(uint32_t index, const char* name, DeviceType type, uint64_t gib = 8) {
  DeviceCaps caps;
  caps.index = index;
  caps.name = name;
  caps.type = type;
  caps.api_major = 1;
  caps.api_minor = 3;
  caps.subgroup_size = caps.min_subgroup_size = caps.max_subgroup_size = 32;
  caps.queues.compute = 0;
  caps.heaps = {{.bytes = gib << 30, .free_bytes = gib << 30, .device_local = true}};
  DeviceFeatures& f = caps.features;
  f.subgroup_arithmetic = f.storage16 = f.int64 = f.timeline_semaphore = true;
  f.synchronization2 = f.buffer_device_address = f.subgroup_size_control = true;
  f.memory_model = true;
  f.memory_model_chains = true;
  return caps;
}

TEST(DeviceSelect, UsableDeviceIsNotRefused) {
  EXPECT_EQ(refusal(usable(0, "x", DeviceType::kDiscrete)), std::nullopt);
}

TEST(DeviceSelect, RefusalNamesEverythingThatIsMissing) {
  struct Case {
    const char* says;
    void (*spoil)(DeviceCaps&);
  };
  const Case cases[] = {
      {"Vulkan 1.3 (it has 1.2)", [](DeviceCaps& c) { c.api_minor = 2; }},
      {"compute queue", [](DeviceCaps& c) { c.queues.compute = -1; }},
      {"subgroup arithmetic", [](DeviceCaps& c) { c.features.subgroup_arithmetic = false; }},
      {"16-bit storage", [](DeviceCaps& c) { c.features.storage16 = false; }},
      {"64-bit integers", [](DeviceCaps& c) { c.features.int64 = false; }},
      {"timeline semaphores", [](DeviceCaps& c) { c.features.timeline_semaphore = false; }},
      {"synchronization2", [](DeviceCaps& c) { c.features.synchronization2 = false; }},
      {"buffer device addresses", [](DeviceCaps& c) { c.features.buffer_device_address = false; }},
      {"subgroup size control", [](DeviceCaps& c) { c.features.subgroup_size_control = false; }},
      {"memory model", [](DeviceCaps& c) { c.features.memory_model = false; }},
      {"availability and visibility chains",
       [](DeviceCaps& c) { c.features.memory_model_chains = false; }},
      {"subgroup size from 4 to 64 (it has 128)", [](DeviceCaps& c) { c.subgroup_size = 128; }},
  };
  for (const Case& item : cases) {
    DeviceCaps caps = usable(0, "x", DeviceType::kDiscrete);
    item.spoil(caps);
    ASSERT_TRUE(refusal(caps).has_value()) << item.says;
    EXPECT_THAT(*refusal(caps), HasSubstr(item.says));
  }
}

TEST(DeviceSelect, PrefersDiscreteThenIntegratedThenCpu) {
  const DeviceCaps devices[] = {usable(0, "llvmpipe", DeviceType::kCpu, 64),
                                usable(1, "Iris", DeviceType::kIntegrated, 32),
                                usable(2, "Radeon", DeviceType::kDiscrete, 8)};
  EXPECT_EQ(*select_device(devices, ""), 2u);
  EXPECT_EQ(*select_device(std::span(devices, 2), ""), 1u);
  EXPECT_EQ(*select_device(std::span(devices, 1), ""), 0u);
}

TEST(DeviceSelect, PrefersMoreMemoryThenTheLowerIndex) {
  const DeviceCaps devices[] = {usable(0, "a", DeviceType::kDiscrete, 8),
                                usable(1, "b", DeviceType::kDiscrete, 24),
                                usable(2, "c", DeviceType::kDiscrete, 24)};
  EXPECT_EQ(*select_device(devices, ""), 1u);
}

TEST(DeviceSelect, RefusedDevicesAreSkipped) {
  DeviceCaps devices[] = {usable(0, "old card", DeviceType::kDiscrete),
                          usable(1, "llvmpipe", DeviceType::kCpu)};
  devices[0].api_minor = 1;
  EXPECT_EQ(*select_device(devices, ""), 1u);
}

TEST(DeviceSelect, SelectsByIndexOrPartOfTheNameIgnoringCase) {
  const DeviceCaps devices[] = {usable(0, "NVIDIA H200", DeviceType::kDiscrete),
                                usable(1, "AMD Radeon 7900", DeviceType::kDiscrete),
                                usable(2, "llvmpipe (LLVM 22)", DeviceType::kCpu)};
  EXPECT_EQ(*select_device(devices, "2"), 2u);
  EXPECT_EQ(*select_device(devices, "radeon"), 1u);
  EXPECT_EQ(*select_device(devices, "LLVM"), 2u);
}

TEST(DeviceSelect, AnUnmatchedWishListsTheAvailableDevices) {
  const DeviceCaps devices[] = {usable(0, "NVIDIA H200", DeviceType::kDiscrete)};
  for (const char* wish : {"7", "intel", "200h"}) {
    const auto result = select_device(devices, wish);
    ASSERT_FALSE(result.ok()) << wish;
    EXPECT_EQ(result.error().kind, ErrorKind::kNotFound);
    EXPECT_THAT(result.error().message, HasSubstr("0: NVIDIA H200"));
  }
}

TEST(DeviceSelect, SelectingARefusedDeviceSaysWhy) {
  DeviceCaps devices[] = {usable(0, "old card", DeviceType::kDiscrete),
                          usable(1, "llvmpipe", DeviceType::kCpu)};
  devices[0].features.storage16 = false;
  const auto result = select_device(devices, "old");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(result.error().message, HasSubstr("16-bit storage"));
}

TEST(DeviceSelect, FailsWithoutAnyDevice) {
  const auto result = select_device({}, "");
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, HasSubstr("no Vulkan device"));
}

TEST(DeviceCapsTest, FeatureNamesFollowTheFlags) {
  DeviceFeatures features;
  EXPECT_TRUE(feature_names(features).empty());
  features.coopmat = features.float16 = true;
  EXPECT_THAT(feature_names(features), ::testing::ElementsAre("float16", "coopmat"));
}

TEST(DeviceCapsTest, OnlyDeviceLocalHeapsCount) {
  DeviceCaps caps;
  caps.heaps = {{.bytes = 100, .free_bytes = 60, .device_local = true},
                {.bytes = 1000, .free_bytes = 900, .device_local = false}};
  EXPECT_EQ(caps.memory_bytes(), 100u);
  EXPECT_EQ(caps.free_bytes(), 60u);
}

}  // namespace
}  // namespace hearth
