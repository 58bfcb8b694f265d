// Device lists and memory estimates, tested without any device.
#include "ui/data/model_picker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/open_model_file.h"
#include "engine/session.h"
#include "tests/support/fake_devices.h"
#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTiny = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

// A device with every feature that Hearth needs.
DeviceCaps device(const char* name, uint32_t index, DeviceType type, uint64_t free_bytes) {
  DeviceCaps caps = fake_device(name, type, 32, 1024, 49152).caps;
  caps.name = name;
  caps.index = index;
  caps.api_major = 1;
  caps.api_minor = 3;
  caps.queues.compute = 0;
  caps.limits.timestamp_ns = 1;
  DeviceFeatures& features = caps.features;
  features.subgroup_arithmetic = features.storage16 = features.int64 = true;
  features.timeline_semaphore = features.synchronization2 = true;
  features.buffer_device_address = features.subgroup_size_control = true;
  features.memory_model = true;
  features.memory_model_chains = true;
  caps.heaps = {{.bytes = free_bytes * 2, .free_bytes = free_bytes, .device_local = true}};
  return caps;
}

std::vector<DeviceCaps> three_devices() {
  DeviceCaps old = device("old card", 2, DeviceType::kDiscrete, 8ull << 30);
  old.features.storage16 = false;
  return {device("llvmpipe", 0, DeviceType::kCpu, 16ull << 30),
          device("card", 1, DeviceType::kDiscrete, 1ull << 30), old};
}

bool settles(ModelPicker& picker) {
  return comes_true([&] {
    picker.update();
    return picker.estimate() != nullptr;
  });
}

TEST(ModelPicker, ListsDevicesWithTheBestOneAndReasonsForRefusal) {
  ModelPicker picker([] { return three_devices(); });
  EXPECT_TRUE(picker.listing());
  ASSERT_TRUE(settles(picker));
  ASSERT_EQ(picker.devices().size(), 3u);
  EXPECT_EQ(picker.devices()[0].type, "cpu");
  EXPECT_EQ(picker.devices()[1].free_bytes, 1ull << 30);
  EXPECT_EQ(picker.devices()[1].memory_bytes, 2ull << 30);
  EXPECT_TRUE(picker.devices()[1].best);
  EXPECT_FALSE(picker.devices()[0].best);
  EXPECT_EQ(picker.devices()[0].refused, "");
  EXPECT_NE(picker.devices()[2].refused, "");
  EXPECT_EQ(picker.chosen_device(), 1u);
  EXPECT_EQ(picker.device_option(), "") << "none selected";
  picker.selection.device = 0;
  EXPECT_EQ(picker.chosen_device(), 0u);
  EXPECT_EQ(picker.device_option(), "0");
  picker.selection.device = 2;
  EXPECT_EQ(picker.chosen_device(), std::nullopt);
}

TEST(ModelPicker, ReportsWhyThereAreNoDevices) {
  ModelPicker broken([]() -> Result<std::vector<DeviceCaps>> {
    return Error{ErrorKind::kNotFound, "no Vulkan loader"};
  });
  broken.selection.model = kTiny;
  ASSERT_TRUE(settles(broken));
  EXPECT_EQ(broken.devices_failure(), "no Vulkan loader");
  EXPECT_FALSE(broken.estimate()->fits());
  EXPECT_GT(broken.estimate()->parameters, 0u) << "the file can still be read";
  ModelPicker empty([] { return std::vector<DeviceCaps>(); });
  ASSERT_TRUE(settles(empty));
  EXPECT_NE(empty.devices_failure(), "");
}

// The estimate equals the plan of a session with the same options.
TEST(ModelPicker, EstimatesAsLoadingDoes) {
  const DeviceCaps caps = device("card", 1, DeviceType::kDiscrete, 1ull << 30);
  const auto file = open_model_file(kTiny);
  ASSERT_TRUE(file.ok());
  const auto plan = plan_model(**file);
  ASSERT_TRUE(plan.ok());
  const SessionOptions options{.context = 128, .max_sequences = 4, .kv = KvFormat::kQ8_0};
  const MemoryPlan expected = plan_memory(
      caps, caps.free_bytes(), *plan, {.limits = step_limits(options, caps, plan->config.context)});
  const ModelEstimate estimate = estimate_model(
      {.model = kTiny, .context = 128, .sequences = 4, .kv = KvFormat::kQ8_0}, &caps);
  EXPECT_EQ(estimate.failure, "");
  EXPECT_EQ(estimate.memory.weight_bytes, expected.weight_bytes);
  EXPECT_EQ(estimate.memory.activation_bytes, expected.activation_bytes);
  EXPECT_EQ(estimate.memory.kv_blocks, expected.kv_blocks);
  EXPECT_EQ(estimate.memory.context, 128u);
  EXPECT_EQ(estimate.parameters, plan->parameters);
  EXPECT_EQ(estimate.model_context, plan->config.context);
  EXPECT_TRUE(estimate.fits());
  EXPECT_FALSE(estimate.context_shortened);
  EXPECT_EQ(estimate.kv_bytes(), expected.kv_blocks * expected.kv_bytes_per_block);
  EXPECT_LT(estimate.memory.kv_bytes_per_token,
            estimate_model({.model = kTiny}, &caps).memory.kv_bytes_per_token);

  // On devices that share host memory, swap space reduces what is free.
  const auto free_bytes = [&](DeviceType type, uint64_t swap_bytes) {
    const DeviceCaps one = device("one", 1, type, 1ull << 30);
    return estimate_model({.model = kTiny, .swap_bytes = swap_bytes}, &one).memory.free_bytes;
  };
  EXPECT_EQ(free_bytes(DeviceType::kDiscrete, 1 << 20), 1ull << 30);
  EXPECT_EQ(free_bytes(DeviceType::kIntegrated, 1 << 20), (1ull << 30) - (1 << 20));
  EXPECT_EQ(free_bytes(DeviceType::kCpu, 2ull << 30), 0u);
}

TEST(ModelPicker, OnlyADefaultContextIsShortened) {
  // Room for weights, activations and a little KV.
  DeviceCaps caps = device("card", 0, DeviceType::kDiscrete, 1ull << 30);
  const ModelEstimate roomy = estimate_model({.model = kTiny}, &caps);
  ASSERT_TRUE(roomy.fits());
  ASSERT_GT(roomy.model_context, 256u);
  const uint64_t needed = roomy.memory.weight_bytes + roomy.memory.activation_bytes;
  uint64_t free_bytes = needed + 300 * roomy.memory.kv_bytes_per_token;
  // The plan's safety margin is not known here, so search for the size at which some context fits.
  ModelEstimate tight;
  for (int i = 0; i < 64; ++i, free_bytes += free_bytes / 64) {
    caps.heaps[0].free_bytes = free_bytes;
    tight = estimate_model({.model = kTiny}, &caps);
    if (tight.fits()) break;
  }
  ASSERT_TRUE(tight.fits());
  EXPECT_TRUE(tight.context_shortened);
  EXPECT_LT(tight.memory.context, roomy.model_context);
  const ModelEstimate asked =
      estimate_model({.model = kTiny, .context = roomy.model_context}, &caps);
  EXPECT_FALSE(asked.fits());
  EXPECT_FALSE(asked.context_shortened);
  EXPECT_GE(asked.memory.max_context, 256u);
}

TEST(ModelPicker, FollowsTheSelection) {
  ModelPicker picker([] { return three_devices(); });
  picker.selection.model = "/nowhere/model.gguf";
  ASSERT_TRUE(settles(picker));
  EXPECT_THAT(picker.estimate()->failure, HasSubstr("/nowhere/model.gguf"));
  picker.selection.model = kTiny;
  EXPECT_EQ(picker.estimate(), nullptr) << "the old estimate is for another model";
  ASSERT_TRUE(settles(picker));
  EXPECT_EQ(picker.estimate()->failure, "");
  picker.selection.context = 64;
  ASSERT_TRUE(settles(picker));
  EXPECT_EQ(picker.estimate()->memory.context, 64u);
  picker.selection = {};
  ASSERT_TRUE(settles(picker));
  EXPECT_EQ(picker.estimate()->failure, "") << "the built-in model";
  const std::string built_in = picker.estimate()->name;
  EXPECT_THAT(built_in, HasSubstr("storyteller"));
  picker.selection.model = "hearth-story";
  ASSERT_TRUE(settles(picker));
  EXPECT_EQ(picker.estimate()->name, built_in) << "found by the beginning of its name";
  for (const char* bad : {"/dev/zero", HEARTH_SOURCE_DIR "/README.md", HEARTH_SOURCE_DIR}) {
    picker.selection.model = bad;
    ASSERT_TRUE(settles(picker));
    EXPECT_NE(picker.estimate()->failure, "") << bad;
    EXPECT_EQ(picker.estimate()->failure.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth::testing
