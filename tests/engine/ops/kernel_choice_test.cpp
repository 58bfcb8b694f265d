// Kernel choice for devices we do not have, pinned down as tables.
#include "engine/ops/kernel_choice.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

DeviceCaps fake(DeviceType type, uint32_t subgroup, uint32_t max_invocations) {
  DeviceCaps caps;
  caps.type = type;
  caps.subgroup_size = caps.min_subgroup_size = caps.max_subgroup_size = subgroup;
  caps.limits.max_group_invocations = max_invocations;
  return caps;
}

struct FakeDevice {
  const char* name;
  DeviceCaps caps;
};

const FakeDevice kDevices[] = {
    {"nvidia", fake(DeviceType::kDiscrete, 32, 1024)},
    {"amd wave64", fake(DeviceType::kDiscrete, 64, 1024)},
    {"amd wave32", fake(DeviceType::kDiscrete, 32, 1024)},
    {"intel", fake(DeviceType::kIntegrated, 16, 1024)},
    {"smallest", fake(DeviceType::kDiscrete, 32, 128)},
    {"lavapipe 256", fake(DeviceType::kCpu, 8, 1024)},
    {"lavapipe 128", fake(DeviceType::kCpu, 4, 1024)},
};

TEST(KernelChoice, CpuDevicesGetTheTierWithoutBarriers) {
  for (const FakeDevice& device : kDevices) {
    const bool cpu = device.caps.type == DeviceType::kCpu;
    const KernelPlan matvec = choose_matvec(device.caps, {1, 4096, 4096});
    EXPECT_EQ(matvec.pipeline.kernel, cpu ? "matvec_invocation.f16" : "matvec_subgroup.f16")
        << device.name;
    const KernelPlan norm = choose_rms_norm(device.caps, {1, 4096});
    if (cpu) {
      EXPECT_EQ(norm.pipeline.constants[0], device.caps.subgroup_size) << device.name;
    }
  }
}

TEST(KernelChoice, GroupsAreWholeSubgroupsWithinTheLimit) {
  for (const FakeDevice& device : kDevices) {
    for (const uint32_t width : {1u, 63u, 288u, 4096u, 16384u}) {
      const uint32_t lanes = choose_rms_norm(device.caps, {5, width}).pipeline.constants[0];
      EXPECT_EQ(lanes % device.caps.subgroup_size, 0u) << device.name;
      EXPECT_GE(lanes, device.caps.subgroup_size) << device.name;
      EXPECT_LE(lanes, device.caps.limits.max_group_invocations) << device.name;
    }
  }
}

TEST(KernelChoice, MatvecGroupsCoverEveryOutput) {
  for (const FakeDevice& device : kDevices) {
    for (const uint32_t outputs : {1u, 7u, 32u, 1000u, 128256u}) {
      const KernelPlan plan = choose_matvec(device.caps, {1, 4096, outputs});
      const bool cpu = device.caps.type == DeviceType::kCpu;
      const uint32_t lanes = plan.pipeline.constants[0];
      const uint32_t per_group =
          cpu ? lanes : lanes / device.caps.subgroup_size * plan.pipeline.constants[2];
      EXPECT_GE(plan.groups.x * per_group, outputs) << device.name;
      EXPECT_LT((plan.groups.x - 1) * per_group, outputs) << device.name << ": an idle group";
    }
  }
}

TEST(KernelChoice, SubgroupKernelsPinTheSizeTheyWerePlannedFor) {
  for (const FakeDevice& device : kDevices) {
    const KernelPlan plan = choose_matvec(device.caps, {1, 4096, 4096});
    if (device.caps.type != DeviceType::kCpu) {
      EXPECT_EQ(plan.pipeline.subgroup_size, device.caps.subgroup_size) << device.name;
    }
  }
}

}  // namespace
}  // namespace hearth
