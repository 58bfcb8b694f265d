#include "tests/support/gpu.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/chain_check.h"
#include "runtime/fragment_check.h"

namespace hearth::testing {
namespace {

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

struct Shared {
  std::unique_ptr<Instance> instance;
  std::unique_ptr<Device> device;
  std::unique_ptr<PipelineStore> pipelines;
};

Result<Shared> open_shared() {
  Shared shared;
  HEARTH_ASSIGN(shared.instance, Instance::create({.application = "hearth tests",
                                                   .validation = wanted_validation()}));
  HEARTH_ASSIGN(shared.device,
                Device::open(*shared.instance, environment("HEARTH_TEST_DEVICE", "")));
  HEARTH_ASSIGN(shared.pipelines, PipelineStore::create(*shared.device));
  HEARTH_TRY(check_chain(*shared.device, *shared.pipelines));
  HEARTH_TRY(check_fragments(*shared.device, *shared.pipelines));
  return shared;
}

// Opens the device before the first test and closes it after the last. It cannot be a static
// object, because drivers and layers have static state that may already be destroyed then.
class SharedEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    auto opened = open_shared();
    // A test program that gets no device fails; it does not skip.
    ASSERT_OK(opened);
    shared = std::move(opened).value();
  }
  void TearDown() override {
    shared.pipelines.reset();
    shared.device.reset();
    shared.instance.reset();
  }
  Shared shared;
};

// gtest owns and deletes it.
SharedEnvironment* const shared_environment =
    static_cast<SharedEnvironment*>(::testing::AddGlobalTestEnvironment(new SharedEnvironment));

}  // namespace

Validation wanted_validation() {
  const std::string wish = environment("HEARTH_TEST_VALIDATION", "on");
  if (wish == "off") return Validation::kOff;
  return wish == "gpu" ? Validation::kGpuAssisted : Validation::kOn;
}

Instance& instance() { return *shared_environment->shared.instance; }

Result<std::unique_ptr<Device>> open_device() {
  return Device::open(instance(), environment("HEARTH_TEST_DEVICE", ""));
}

void GpuTest::SetUp() {
  device_ = shared_environment->shared.device.get();
  pipelines_ = shared_environment->shared.pipelines.get();
  instance().take_validation_messages();
}

void GpuTest::TearDown() {
  for (const std::string& message : instance().take_validation_messages())
    ADD_FAILURE() << "validation: " << message;
}

Buffer GpuTest::poisoned(uint64_t bytes, std::string_view name) {
  auto buffer =
      device().memory().allocate({.bytes = bytes, .intent = MemoryIntent::kReadback, .name = name});
  EXPECT_TRUE(buffer.ok()) << buffer.error().message;
  std::memset(buffer->mapped(), 0xff, bytes);
  EXPECT_TRUE(buffer->flush().ok());
  return std::move(buffer).value();
}

}  // namespace hearth::testing
