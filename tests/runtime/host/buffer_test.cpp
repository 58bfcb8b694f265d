// Slices stay within their buffers, and what does not is refused before it reaches a GPU.
#include "runtime/buffer.h"

#include <limits>

#include <gtest/gtest.h>

#include "runtime/command_recorder.h"

namespace hearth::testing {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

TEST(BufferSlice, IsValidWithinItsBuffer) {
  const Buffer buffer = Buffer::stand_in(0x1000, 256);
  EXPECT_TRUE(buffer.all().is_valid());
  EXPECT_TRUE((BufferSlice{&buffer, 256, 0}).is_valid()) << "empty, at the end";
  EXPECT_FALSE((BufferSlice{&buffer, 0, 257}).is_valid());
  EXPECT_FALSE((BufferSlice{&buffer, 256, 1}).is_valid());
  EXPECT_FALSE((BufferSlice{&buffer, 257, 0}).is_valid());
  EXPECT_FALSE((BufferSlice{&buffer, 16, kMost}).is_valid()) << "its end overflows";
  EXPECT_FALSE((BufferSlice{&buffer, kMost, 16}).is_valid());
  EXPECT_FALSE(BufferSlice().is_valid()) << "no buffer";
}

TEST(BufferSlice, PartsAddUp) {
  const Buffer buffer = Buffer::stand_in(0x1000, 256);
  const BufferSlice part = buffer.slice(64, 128).slice(16, 112);
  EXPECT_EQ(part.offset, 80u);
  EXPECT_EQ(part.bytes, 112u);
  EXPECT_EQ(part.address(), 0x1050u);
}

#ifndef NDEBUG
TEST(BufferSliceDeathTest, APartOutsideFailsAnAssert) {
  const Buffer buffer = Buffer::stand_in(0x1000, 256);
  const BufferSlice half = buffer.slice(0, 128);
  EXPECT_DEATH(static_cast<void>(buffer.slice(0, 257)), "count <= bytes - from");
  EXPECT_DEATH(static_cast<void>(half.slice(64, 65)), "count <= bytes - from")
      << "within the buffer, but not within the slice";
  EXPECT_DEATH(static_cast<void>(half.slice(129, 0)), "from <= bytes");
  EXPECT_DEATH(static_cast<void>(half.slice(1, kMost)), "count <= bytes - from");
  EXPECT_DEATH(static_cast<void>(BufferSlice{&buffer, 200, 57}.address()), "is_valid");
}
#endif

// In every build: a slice put together by hand, or by a build without asserts.
TEST(BufferSlice, ARecorderLeavesOutCommandsOutsideTheirBuffers) {
  const Buffer buffer = Buffer::stand_in(0x1000, 256);
  CommandRecorder recorder = CommandRecorder::dry();
  recorder.fill(buffer.slice(128, 128), 0);
  EXPECT_TRUE(recorder.status().ok());
  recorder.fill({&buffer, 128, 132}, 0);
  recorder.copy({&buffer, 300, 4}, buffer.slice(0, 4));
  ASSERT_FALSE(recorder.status().ok());
  EXPECT_EQ(recorder.status().error().message,
            "'fill' was given 132 bytes at offset 128 of a buffer of 256")
      << "the first mistake";
}

}  // namespace
}  // namespace hearth::testing
