#include "runtime/kernel_arguments.h"

#include <cstring>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "params/gather_rows.h"

// Like a header of shaders/params.
HEARTH_PARAMS(TestArguments)
reads_address x;
writes_address y;
updates_address sums;
uint rows;
std::uint64_t stride;
float scale;
HEARTH_FINDS_TO_READ(near)
HEARTH_FINDS_TO_WRITE(far)
HEARTH_PARAMS_END

namespace hearth::testing {
namespace {

using Arguments = params::TestArguments;

bool same(const Access& a, const Access& b) {
  return a.mode == b.mode && a.slice.buffer == b.slice.buffer && a.slice.offset == b.slice.offset &&
         a.slice.bytes == b.slice.bytes;
}

TEST(KernelArguments, ArePackedAsGlslLaysThemOut) {
  const Buffer x = Buffer::stand_in(0x1000, 256), y = Buffer::stand_in(0x2000, 256);
  const KernelArguments arguments = Arguments{
      .x = x.all(), .y = y.slice(16, 32), .rows = 7, .stride = 0x123456789, .scale = 0.5f};
  struct {
    uint64_t x, y, sums;
    uint32_t rows;
    uint64_t stride;  // after four bytes of padding
    float scale;
  } packed;
  ASSERT_EQ(arguments.bytes().size(), 44u);
  std::memcpy(&packed, arguments.bytes().data(), arguments.bytes().size());
  EXPECT_EQ(packed.x, 0x1000u);
  EXPECT_EQ(packed.y, 0x2010u);
  EXPECT_EQ(packed.sums, 0u) << "absent";
  EXPECT_EQ(packed.rows, 7u);
  EXPECT_EQ(packed.stride, 0x123456789u);
  EXPECT_EQ(packed.scale, 0.5f);
}

TEST(KernelArguments, AccessesFollowFromTheDeclaration) {
  const Buffer x = Buffer::stand_in(0x1000, 256), y = Buffer::stand_in(0x2000, 256);
  const KernelArguments arguments =
      Arguments{.x = x.all(), .y = y.slice(16, 32), .sums = y.slice(64, 4)};
  ASSERT_EQ(arguments.accesses().size(), 3u);
  EXPECT_TRUE(same(arguments.accesses()[0], reads(x.all())));
  EXPECT_TRUE(same(arguments.accesses()[1], writes(y.slice(16, 32))));
  EXPECT_TRUE(same(arguments.accesses()[2], reads_writes(y.slice(64, 4))));
}

// They take no room among the arguments.
TEST(KernelArguments, BuffersThatTheKernelFindsItselfAreAccessedToo) {
  const Buffer x = Buffer::stand_in(0x1000, 256), y = Buffer::stand_in(0x2000, 256);
  const KernelArguments arguments = Arguments{.x = x.all(), .near = x.slice(16, 32), .far = y.all()};
  EXPECT_EQ(arguments.bytes().size(), 44u);
  ASSERT_EQ(arguments.accesses().size(), 3u);
  EXPECT_TRUE(same(arguments.accesses()[1], reads(x.slice(16, 32))));
  EXPECT_TRUE(same(arguments.accesses()[2], writes(y.all())));
}

// A dispatch may do less than its kernel is declared to do, and may go without a buffer.
TEST(KernelArguments, AnOpMayNarrowThem) {
  const Buffer x = Buffer::stand_in(0x1000, 256);
  const KernelArguments arguments = Arguments{.x = std::optional<BufferSlice>(),
                                              .y = writes_disjoint(x.all()),
                                              .sums = reads(x.slice(0, 4))};
  ASSERT_EQ(arguments.accesses().size(), 2u);
  EXPECT_TRUE(same(arguments.accesses()[0], writes_disjoint(x.all())));
  EXPECT_TRUE(same(arguments.accesses()[1], reads(x.slice(0, 4))));
}

TEST(KernelArguments, OfARealKernel) {
  const Buffer x = Buffer::stand_in(0x1000, 256), y = Buffer::stand_in(0x2000, 256);
  Hazards hazards;
  const KernelArguments first = params::GatherRows{.x = x.all(), .indices = x.all(), .y = y.all()};
  const KernelArguments second = params::GatherRows{.x = y.all(), .indices = x.all(), .y = x.all()};
  EXPECT_FALSE(hazards.add(first.accesses()));
  EXPECT_TRUE(hazards.add(second.accesses()));
}

}  // namespace
}  // namespace hearth::testing
