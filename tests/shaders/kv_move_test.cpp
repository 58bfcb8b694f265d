#include "engine/ops/kv_move.h"

#include <cstring>
#include <random>

#include "params/kv_move.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

using KvMoveTest = GpuTest;

// Rows of every size that caches have, lists that overwrite what they have read, an empty list; all
// other bytes stay.
TEST_F(KvMoveTest, MovesRowsInTheOrderOfTheirLists) {
  constexpr uint32_t kBlocks = 6, kHeads = 3;
  const std::vector<uint32_t> row_bytes = {2, 6, 8, 16, 32, 80, 256, 512, 1024};
  std::mt19937 generator(1);
  std::vector<uint64_t> offsets;
  uint64_t bytes = 0;
  for (const uint32_t size : row_bytes) {
    offsets.push_back(bytes);
    bytes += (uint64_t{kBlocks} * kHeads * params::kBlockTokens * size + 255) / 256 * 256;
  }
  std::vector<std::byte> cache(bytes);
  for (std::byte& byte : cache) byte = static_cast<std::byte>(generator());

  // Places 16 * block + slot. The first list closes gaps; the second crosses blocks.
  const std::vector<std::vector<std::pair<uint32_t, uint32_t>>> moves = {
      {{17, 16}, {18, 17}, {21, 18}, {40, 19}}, {}, {{80, 95}, {0, 80}, {5, 0}}};
  std::vector<uint32_t> words = {99};
  std::vector<params::KvMoveList> lists;
  std::vector<std::byte> expected = cache;
  for (const auto& list : moves) {
    lists.push_back({static_cast<uint32_t>(words.size()), static_cast<uint32_t>(list.size())});
    for (const auto& [from, to] : list) {
      words.push_back(from);
      words.push_back(to);
      for (size_t p = 0; p < row_bytes.size(); ++p)
        for (uint32_t head = 0; head < kHeads; ++head) {
          const auto row = [&](uint32_t place) {
            return expected.data() + offsets[p] +
                   (uint64_t{place / 16 * kHeads + head} * 16 + place % 16) * row_bytes[p];
          };
          std::memmove(row(to), row(from), row_bytes[p]);
        }
    }
  }

  const Buffer pool = filled(cache);
  std::vector<params::KvPlane> plane_list;
  for (size_t p = 0; p < row_bytes.size(); ++p)
    plane_list.push_back({.rows = pool.address() + offsets[p], .row_bytes = row_bytes[p]});
  const Buffer plane_buffer = filled(plane_list), list_buffer = filled(lists);
  const Buffer word_buffer = filled(words);
  const KvMoveShape shape{.lists = static_cast<uint32_t>(lists.size()),
                          .planes = static_cast<uint32_t>(row_bytes.size()),
                          .kv_heads = kHeads};
  const KvMove op{.cache = pool.all(),
                  .planes = plane_buffer.all(),
                  .lists = list_buffer.all(),
                  .words = word_buffer.all(),
                  .shape = shape};
  run([&](CommandRecorder& recorder) -> Status {
    KvMove short_list = op;
    short_list.shape.lists = 4;
    EXPECT_FALSE(
        record_kv_move(recorder, pipelines(), choose_kv_move(device().caps(), shape), short_list)
            .ok());
    return record_kv_move(recorder, pipelines(), choose_kv_move(device().caps(), shape), op);
  });
  EXPECT_TRUE(read<std::byte>(pool) == expected);
}

}  // namespace
}  // namespace hearth::testing
