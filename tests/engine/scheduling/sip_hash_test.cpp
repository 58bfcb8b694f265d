#include "engine/scheduling/sip_hash.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

// The reference implementation's test vectors for the key 00 01 ... 0f, as little-endian words.
constexpr std::uint64_t kKeyLow = 0x0706050403020100, kKeyHigh = 0x0f0e0d0c0b0a0908;

TEST(SipHash, EqualsTheReferenceVectors) {
  SipHash empty(kKeyLow, kKeyHigh);
  EXPECT_EQ(empty.finish(), (Hash128{0xe6a825ba047f81a3, 0x930255c71472f66d}));
  SipHash eight_bytes(kKeyLow, kKeyHigh);
  eight_bytes.add(0x0706050403020100);
  EXPECT_EQ(eight_bytes.finish(), (Hash128{0x61f55862baa9623b, 0xb49714f364e2830f}));
}

TEST(SipHash, DependsOnTheKeyAndOnEveryWord) {
  const auto hash = [](std::uint64_t key, std::uint64_t first, std::uint64_t second) {
    SipHash made(key, 1);
    made.add(first);
    made.add(second);
    return made.finish();
  };
  EXPECT_EQ(hash(1, 2, 3), hash(1, 2, 3));
  EXPECT_NE(hash(1, 2, 3), hash(2, 2, 3));
  EXPECT_NE(hash(1, 2, 3), hash(1, 3, 2));
  EXPECT_NE(hash(1, 2, 3), hash(1, 2, 4));
}

}  // namespace
}  // namespace hearth
