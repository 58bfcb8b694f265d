#include "runtime/memory.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <gmock/gmock.h>

#include "runtime/command_recorder.h"
#include "runtime/queue.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr MemoryIntent kIntents[] = {MemoryIntent::kWeights, MemoryIntent::kKv,
                                     MemoryIntent::kActivations, MemoryIntent::kUpload,
                                     MemoryIntent::kReadback};

class MemoryTest : public GpuTest {};

TEST_F(MemoryTest, EveryIntentHasAnAddressAndIsCounted) {
  for (const MemoryIntent intent : kIntents) {
    const IntentUse before = device().memory().use().of(intent);
    {
      ASSERT_ASSIGN(const Buffer buffer,
                    device().memory().allocate({.bytes = 1000, .intent = intent, .name = "one"}));
      EXPECT_NE(buffer.address(), 0u);
      EXPECT_EQ(buffer.address() % 256, 0u);
      EXPECT_EQ(buffer.bytes(), 1000u);
      const IntentUse during = device().memory().use().of(intent);
      EXPECT_EQ(during.bytes, before.bytes + 1000);
      EXPECT_EQ(during.buffers, before.buffers + 1);
      EXPECT_GE(during.peak_bytes, during.bytes);
    }
    const IntentUse after = device().memory().use().of(intent);
    EXPECT_EQ(after.bytes, before.bytes);
    EXPECT_EQ(after.buffers, before.buffers);
  }
}

TEST_F(MemoryTest, HostSeesUploadAndReadbackMemory) {
  for (const MemoryIntent intent : {MemoryIntent::kUpload, MemoryIntent::kReadback}) {
    ASSERT_ASSIGN(const Buffer buffer,
                  device().memory().allocate({.bytes = 64, .intent = intent, .name = "host"}));
    ASSERT_NE(buffer.mapped(), nullptr);
    EXPECT_EQ(buffer.view<float>().size(), 16u);
  }
}

TEST_F(MemoryTest, HostSeesDeviceMemoryAllocatedForHostWrites) {
  for (const MemoryIntent intent :
       {MemoryIntent::kWeights, MemoryIntent::kKv, MemoryIntent::kActivations}) {
    ASSERT_ASSIGN(const Buffer buffer,
                  device().memory().allocate(
                      {.bytes = 64, .intent = intent, .name = "written", .host_writes = true}));
    ASSERT_NE(buffer.mapped(), nullptr);
    ASSERT_OK(buffer.flush());
  }
}

// Two devices copy through the same host memory; here it is one device twice.
TEST_F(MemoryTest, TwoBuffersOfTheSameHostMemoryShareItsContents) {
  const uint64_t alignment = device().caps().limits.host_import_alignment;
  if (alignment == 0) GTEST_SKIP() << "the driver has no VK_EXT_external_memory_host";
  const size_t bytes = 4 * alignment;
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(alignment, bytes)), std::free);
  const std::span<std::byte> shared(memory.get(), bytes);
  std::ranges::fill(shared, std::byte{1});
  const uint64_t buffers_before = device().memory().use().of(MemoryIntent::kReadback).buffers;
  {
    ASSERT_ASSIGN(const Buffer written, device().memory().import_host(shared, "written"));
    ASSERT_ASSIGN(const Buffer read, device().memory().import_host(shared, "read"));
    EXPECT_TRUE(written.is_imported());
    EXPECT_EQ(read.mapped(), memory.get());
    ASSERT_ASSIGN(const Buffer own, device().memory().allocate({.bytes = bytes, .name = "own"}));
    ASSERT_ASSIGN(const Buffer result,
                  device().memory().allocate(
                      {.bytes = bytes, .intent = MemoryIntent::kReadback, .name = "result"}));
    ASSERT_ASSIGN(CommandRecorder fill, CommandRecorder::begin(device(), {.name = "fill"}));
    fill.fill(own.all(), 0x07070707);
    fill.copy(own.all(), written.all());
    ASSERT_ASSIGN(const CommandBuffer fill_commands, fill.finish());
    ASSERT_OK(device().compute().run(fill_commands));
    EXPECT_EQ(shared.front(), std::byte{7});
    EXPECT_EQ(shared.back(), std::byte{7});
    ASSERT_ASSIGN(CommandRecorder copy, CommandRecorder::begin(device(), {.name = "copy"}));
    copy.copy(read.all(), result.all());
    ASSERT_ASSIGN(const CommandBuffer copy_commands, copy.finish());
    ASSERT_OK(device().compute().run(copy_commands));
    EXPECT_EQ(result.view<uint8_t>().back(), 7);
    EXPECT_EQ(device().memory().use().of(MemoryIntent::kReadback).buffers, buffers_before + 3);
  }
  EXPECT_EQ(device().memory().use().of(MemoryIntent::kReadback).buffers, buffers_before);
}

TEST_F(MemoryTest, MovingABufferMovesItsCount) {
  ASSERT_ASSIGN(Buffer first, device().memory().allocate({.bytes = 64, .name = "first"}));
  ASSERT_ASSIGN(Buffer second, device().memory().allocate({.bytes = 32, .name = "second"}));
  const uint64_t address = first.address();
  const uint64_t bytes = device().memory().use().of(MemoryIntent::kActivations).bytes;
  second = std::move(first);
  EXPECT_EQ(second.address(), address);
  EXPECT_FALSE(first);
  EXPECT_EQ(device().memory().use().of(MemoryIntent::kActivations).bytes, bytes - 32);
}

TEST_F(MemoryTest, TheErrorSaysWhatWasRequestedAndWhatIsFree) {
  const uint64_t most = device().caps().limits.max_allocation_bytes;
  const auto result = device().memory().allocate(
      {.bytes = most + 256, .intent = MemoryIntent::kWeights, .name = "blk.0.ffn"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kOutOfMemory);
  EXPECT_THAT(result.error().message, HasSubstr("weights 'blk.0.ffn'"));
  EXPECT_THAT(result.error().message, HasSubstr("free"));
}

TEST_F(MemoryTest, RequestsBeyondTheBudgetFailAndNothingLeaks) {
  ASSERT_ASSIGN(const auto device, open_device());
  if (device->caps().memory_bytes() > 64ull << 30)
    GTEST_SKIP() << "filling this device takes too long";
  std::vector<Buffer> held;
  const uint64_t bytes = std::min<uint64_t>(device->caps().limits.max_allocation_bytes, 1ull << 30);
  Error error;
  // Allocating twice the memory must fail at some point. Lavapipe does not touch unwritten memory.
  for (uint64_t sum = 0; sum < 2 * device->caps().memory_bytes(); sum += bytes) {
    auto result =
        device->memory().allocate({.bytes = bytes, .intent = MemoryIntent::kKv, .name = "kv pool"});
    if (!result.ok()) {
      error = result.error();
      break;
    }
    held.push_back(std::move(result).value());
  }
  EXPECT_EQ(error.kind, ErrorKind::kOutOfMemory);
  EXPECT_THAT(error.message, HasSubstr("kv pool"));
  EXPECT_THAT(error.message, HasSubstr("free"));
  held.clear();
  EXPECT_EQ(device->memory().use().of(MemoryIntent::kKv).bytes, 0u);
  ASSERT_OK(device->memory().allocate({.bytes = bytes, .intent = MemoryIntent::kKv, .name = "kv"}));
}

TEST_F(MemoryTest, ZeroBytesAreAnError) {
  const auto result = device().memory().allocate({.bytes = 0, .name = "nothing"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace hearth::testing
