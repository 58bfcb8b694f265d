// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein): a keyed hash for which nobody can
// find collisions without knowing the key.
#pragma once

#include <bit>
#include <cstdint>

namespace hearth {

struct Hash128 {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Hash128&) const = default;
};

class SipHash {
 public:
  SipHash(std::uint64_t key_low, std::uint64_t key_high)
      : v0_(key_low ^ 0x736f6d6570736575),
        v1_(key_high ^ 0x646f72616e646f6d ^ 0xee),
        v2_(key_low ^ 0x6c7967656e657261),
        v3_(key_high ^ 0x7465646279746573) {}

  void add(std::uint64_t word) {
    length_ += 8;
    absorb(word);
  }

  Hash128 finish() {
    absorb(length_ << 56);
    v2_ ^= 0xee;
    rounds(4);
    const std::uint64_t low = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xdd;
    rounds(4);
    return {low, v0_ ^ v1_ ^ v2_ ^ v3_};
  }

 private:
  void absorb(std::uint64_t word) {
    v3_ ^= word;
    rounds(2);
    v0_ ^= word;
  }

  void rounds(int count) {
    for (; count > 0; --count) {
      v0_ += v1_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v3_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ += v3_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ += v1_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t length_ = 0;  // bytes
};

}  // namespace hearth
