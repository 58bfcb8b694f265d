#include "engine/ops/block_copy.h"

#include <random>

#include "params/block_copy.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

using params::CopyPair;
using params::CopyPlane;

constexpr uint32_t kNone = params::kNoBlock;

std::vector<uint32_t> random_words(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<uint32_t> words(count);
  for (uint32_t& word : words) word = static_cast<uint32_t>(generator());
  return words;
}

// Planes like those of a pool: keys and values of two layers, and smaller scales, with gaps between
// them. Offsets and sizes are in bytes.
struct Layout {
  std::vector<uint64_t> offset;
  std::vector<uint32_t> block_bytes;
  uint64_t bytes = 0;

  explicit Layout(uint32_t blocks) {
    for (const uint32_t size : {8192u, 8192u, 16u, 512u, 8192u, 48u}) {
      offset.push_back(bytes);
      block_bytes.push_back(size);
      bytes += uint64_t{size} * blocks + 256;
    }
  }
};

class BlockCopyTest : public GpuTest {
 protected:
  // Copies between pools of `from_blocks` and `to_blocks` blocks, or within one pool if `within`,
  // and checks every byte of the target.
  void check(uint32_t from_blocks, uint32_t to_blocks, bool within,
             const std::vector<CopyPair>& pairs) {
    const Layout from_layout(from_blocks), to_layout(to_blocks);
    const std::vector<uint32_t> source = random_words(from_layout.bytes / 4, 1);
    const std::vector<uint32_t> before = within ? source : random_words(to_layout.bytes / 4, 2);
    const Buffer from = filled(source);
    const Buffer other = filled(before);
    const Buffer& to = within ? from : other;

    std::vector<uint32_t> expected = before;
    std::vector<CopyPlane> planes;
    for (size_t p = 0; p < from_layout.offset.size(); ++p) {
      const uint32_t bytes = from_layout.block_bytes[p];
      planes.push_back(
          {from.address() + from_layout.offset[p], to.address() + to_layout.offset[p], bytes, 0});
      for (const CopyPair& pair : pairs) {
        if (pair.from == kNone) continue;
        std::memcpy(expected.data() + (to_layout.offset[p] + uint64_t{pair.to} * bytes) / 4,
                    source.data() + (from_layout.offset[p] + uint64_t{pair.from} * bytes) / 4,
                    bytes);
      }
    }
    const Buffer plane_buffer = filled(planes), pair_buffer = filled(pairs);
    const BlockCopyShape shape{.pairs = static_cast<uint32_t>(pairs.size()),
                               .planes = static_cast<uint32_t>(planes.size()),
                               .block_bytes = 8192};
    run([&](CommandRecorder& recorder) {
      return record_block_copy(recorder, pipelines(), choose_block_copy(device().caps(), shape),
                               {.from = from.all(),
                                .to = to.all(),
                                .planes = plane_buffer.all(),
                                .pairs = pair_buffer.all(),
                                .shape = shape});
    });
    EXPECT_EQ(read<uint32_t>(to), expected);
    if (!within) {
      EXPECT_EQ(read<uint32_t>(from), source);
    }
  }
};

TEST_F(BlockCopyTest, CopiesWithinThePool) {
  check(9, 9, true, {{0, 8}, {3, 4}, {kNone, 1}, {0, 2}});
}

TEST_F(BlockCopyTest, CopiesToAnotherPoolAndBack) {
  check(7, 3, false, {{6, 0}, {1, 2}});
  check(3, 7, false, {{2, 6}, {kNone, kNone}, {0, 3}});
}

TEST_F(BlockCopyTest, UnalignedBlocksAreRefused) {
  const Buffer any = poisoned(64);
  for (const uint32_t bytes : {0u, 24u}) {
    const BlockCopyShape shape{.pairs = 1, .planes = 1, .block_bytes = bytes};
    ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
    const Status status =
        record_block_copy(recorder, pipelines(), choose_block_copy(device().caps(), shape),
                          {.from = any.all(),
                           .to = any.all(),
                           .planes = any.all(),
                           .pairs = any.all(),
                           .shape = shape});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
  }
}

}  // namespace
}  // namespace hearth::testing
