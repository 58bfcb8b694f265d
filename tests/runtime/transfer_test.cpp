#include "runtime/transfer.h"

#include <numeric>
#include <random>

#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

std::vector<std::byte> random_bytes(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator());
  return bytes;
}

// Staged copies and writes in place, for memory that the host can see, must have the same effect.
class TransferTest : public GpuTest, public ::testing::WithParamInterface<bool> {
 protected:
  TransferOptions options(uint64_t ring, uint64_t chunk) {
    return {.ring_bytes = ring, .chunk_bytes = chunk, .direct = GetParam()};
  }
};

TEST_P(TransferTest, RaggedSizesSurviveARoundTripThroughASmallRing) {
  // The ring is not a multiple of the chunk, so that some chunks skip its end.
  ASSERT_ASSIGN(const auto transfer, Transfer::create(device(), options(10000, 4096)));
  for (const size_t bytes : {1, 4, 4095, 4096, 4097, 9999, 10000, 50001, 300000}) {
    ASSERT_ASSIGN(const Buffer buffer,
                  device().memory().allocate(
                      {.bytes = bytes, .intent = MemoryIntent::kWeights, .name = "target"}));
    const std::vector<std::byte> sent = random_bytes(bytes, static_cast<uint32_t>(bytes));
    ASSERT_OK(transfer->upload(buffer.all(), sent));
    ASSERT_OK(transfer->finish());
    std::vector<std::byte> received(bytes);
    ASSERT_OK(transfer->download(buffer.all(), received));
    EXPECT_EQ(sent, received) << bytes;
  }
}

TEST_P(TransferTest, ManyUploadsNeedOneFinish) {
  ASSERT_ASSIGN(const auto transfer, Transfer::create(device(), options(1 << 16, 1 << 14)));
  constexpr size_t kPieces = 50, kBytes = 7000;
  ASSERT_ASSIGN(const Buffer buffer, device().memory().allocate({.bytes = kPieces * kBytes,
                                                                 .intent = MemoryIntent::kWeights,
                                                                 .name = "target"}));
  const std::vector<std::byte> sent = random_bytes(kPieces * kBytes, 1);
  for (size_t i = 0; i < kPieces; ++i)
    ASSERT_OK(transfer->upload(buffer.slice(i * kBytes, kBytes),
                               std::span(sent).subspan(i * kBytes, kBytes)));
  ASSERT_OK(transfer->finish());
  std::vector<std::byte> received(sent.size());
  ASSERT_OK(transfer->download(buffer.all(), received));
  EXPECT_EQ(sent, received);
}

// Where memory is mapped, bytes too many would overwrite something else.
TEST_P(TransferTest, SizesThatDifferAreRefused) {
  ASSERT_ASSIGN(const auto transfer, Transfer::create(device(), options(10000, 4096)));
  ASSERT_ASSIGN(const Buffer buffer,
                device().memory().allocate(
                    {.bytes = 64, .intent = MemoryIntent::kWeights, .name = "target"}));
  std::vector<std::byte> bytes(65);
  const auto nothing = [](uint64_t, std::span<std::byte>) { return Status(); };
  EXPECT_FALSE(transfer->upload(buffer.all(), bytes).ok());
  EXPECT_FALSE(transfer->upload({&buffer, 32, 33}, std::span(bytes).first(33)).ok());
  EXPECT_FALSE(transfer->upload({&buffer, 32, 33}, nothing).ok());
  EXPECT_FALSE(transfer->download(buffer.all(), bytes).ok());
  ASSERT_OK(transfer->upload(buffer.all(), std::span(bytes).first(64)));
  ASSERT_OK(transfer->finish());
}

TEST_P(TransferTest, GeneratedBytesAreUploadedInOrder) {
  ASSERT_ASSIGN(const auto transfer, Transfer::create(device(), options(3000, 1000)));
  constexpr uint64_t kBytes = 12345;
  ASSERT_ASSIGN(const Buffer buffer,
                device().memory().allocate(
                    {.bytes = kBytes, .intent = MemoryIntent::kWeights, .name = "target"}));
  uint64_t expected_offset = 0;
  const Transfer::Fill fill = [&](uint64_t offset, std::span<std::byte> chunk) -> Status {
    EXPECT_EQ(offset, expected_offset);
    expected_offset += chunk.size();
    for (size_t i = 0; i < chunk.size(); ++i) chunk[i] = static_cast<std::byte>(offset + i);
    return {};
  };
  ASSERT_OK(transfer->upload(buffer.all(), fill));
  ASSERT_OK(transfer->finish());
  EXPECT_EQ(expected_offset, kBytes);
  std::vector<std::byte> received(kBytes);
  ASSERT_OK(transfer->download(buffer.all(), received));
  for (size_t i = 0; i < kBytes; ++i) ASSERT_EQ(received[i], static_cast<std::byte>(i)) << i;
}

TEST_P(TransferTest, AFailedFillLeavesTheTransferUsable) {
  // The upload that fails has wrapped to the start of the ring, because its end was too short.
  ASSERT_ASSIGN(const auto transfer, Transfer::create(device(), options(2500, 1000)));
  ASSERT_ASSIGN(const Buffer buffer,
                device().memory().allocate(
                    {.bytes = 9000, .intent = MemoryIntent::kWeights, .name = "target"}));
  const Transfer::Fill failing = [](uint64_t offset, std::span<std::byte> chunk) -> Status {
    if (offset + chunk.size() > 4000) return Error{ErrorKind::kIo, "the file ends here"};
    return {};
  };
  const Status status = transfer->upload(buffer.all(), failing);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "the file ends here");

  const std::vector<std::byte> sent = random_bytes(9000, 3);
  ASSERT_OK(transfer->upload(buffer.all(), sent));
  ASSERT_OK(transfer->finish());
  std::vector<std::byte> received(9000);
  ASSERT_OK(transfer->download(buffer.all(), received));
  EXPECT_EQ(sent, received);
}

INSTANTIATE_TEST_SUITE_P(Paths, TransferTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Direct" : "Staged"; });

}  // namespace
}  // namespace hearth::testing
