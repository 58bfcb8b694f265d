// A device for tests, with validation layers on. A test derived from GpuTest fails if the layers
// report anything while it runs.
//
// HEARTH_TEST_VALIDATION = on (default), gpu (also instruments shaders), off.
// HEARTH_TEST_DEVICE = an argument of `-d`.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/device.h"
#include "runtime/instance.h"
#include "runtime/memory.h"
#include "runtime/pipeline.h"
#include "runtime/queue.h"

namespace hearth::testing {

// Takes the value out of a Result, or ends the test with its message.
#define ASSERT_OK(expression)                                 \
  do {                                                        \
    const auto& hearth_ok = (expression);                     \
    ASSERT_TRUE(hearth_ok.ok()) << hearth_ok.error().message; \
  } while (false)
#define ASSERT_ASSIGN(target, expression)                    \
  auto HEARTH_UNIQUE(assigned_, __LINE__) = (expression);    \
  ASSERT_TRUE(HEARTH_UNIQUE(assigned_, __LINE__).ok())       \
      << HEARTH_UNIQUE(assigned_, __LINE__).error().message; \
  target = std::move(HEARTH_UNIQUE(assigned_, __LINE__)).value()

// The setting of HEARTH_TEST_VALIDATION; by default core and synchronization checks.
Validation wanted_validation();

// The instance that all tests of the process share.
Instance& instance();

// A separate device, for tests that break it.
Result<std::unique_ptr<Device>> open_device();

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  Device& device() { return *device_; }
  PipelineStore& pipelines() { return *pipelines_; }

  // A buffer that the host can write and read, filled with 0xFF: NaN as f32 and f16, which reveals
  // a kernel that skips an element.
  Buffer poisoned(uint64_t bytes, std::string_view name = "poisoned");
  template <class T>
  Buffer filled(std::span<const T> values, std::string_view name = "filled") {
    Buffer buffer = poisoned(values.size_bytes(), name);
    std::memcpy(buffer.mapped(), values.data(), values.size_bytes());
    EXPECT_TRUE(buffer.flush().ok());
    return buffer;
  }
  template <class T>
  Buffer filled(const std::vector<T>& values, std::string_view name = "filled") {
    return filled(std::span<const T>(values), name);
  }
  template <class T>
  std::vector<T> read(const Buffer& buffer) {
    EXPECT_TRUE(buffer.invalidate().ok());
    const auto view = buffer.view<T>();
    return {view.begin(), view.end()};
  }

  // Records with `record`, runs once and waits.
  template <class Record>
  void run(Record&& record) {
    auto recorder = CommandRecorder::begin(device());
    ASSERT_OK(recorder);
    ASSERT_OK(record(*recorder));
    auto commands = recorder->finish();
    ASSERT_OK(commands);
    ASSERT_OK(device().compute().run(*commands));
  }

 private:
  Device* device_ = nullptr;
  PipelineStore* pipelines_ = nullptr;
};

}  // namespace hearth::testing
