// Logits and weights as integers, so that comparing and adding them gives the same bits in any order and
// at any workgroup size.
//
// A key is an unsigned integer that orders as its logit does. NaN has a key of its own below all others,
// by which rows with a NaN are recognized. +infinity counts as the largest float, -0 as 0. A weight is exp(-distance) in units of 2^-kWeightBits, where distance is how
// far a logit is below the row's largest; the sum of the weights of a whole vocabulary fits 64 bits.
// Anything below one unit is lost: at most 2^18 * 2^-38 of a row's probability.
#ifndef HEARTH_SAMPLING_KEY_GLSL
#define HEARTH_SAMPLING_KEY_GLSL

const uint kMinusInfinityKey = 0x007fffffu;  // keys up to this are not candidates
const uint kNanKey = 0;
const uint kLimbBits = 19;                   // a weight is two limbs: 2^19 * high + low
const uint kWeightBits = 2 * kLimbBits;
const float kMaxDistance = 26.5;  // weights at this distance and beyond are zero

uint logit_key(uint bits) {
  const uint magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return kNanKey;
  if (magnitude == 0) return 0x80000000u;
  if (bits == 0x7f800000u) return 0xff7fffffu;
  return bits == magnitude ? bits | 0x80000000u : ~bits;
}

float key_logit(uint key) {
  return uintBitsToFloat((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key);
}

// exp(-distance) for 0 <= distance <= kMaxDistance, with a relative error of about 1e-7. Spelled out and
// `precise`, because two kernels on one device must agree to the last bit.
float exp_minus(float distance) {
  precise const float n = floor(distance * 1.44269504 + 0.5);
  precise const float r = (n * 0.693359375 - distance) - n * 2.12194440e-4;  // |r| <= ln(2) / 2
  precise float p = 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return p * uintBitsToFloat((127u - uint(n)) << 23);
}

// The weight as limbs (high, low), for any distance. No branches, and conversions go through int, so
// that CPUs can vectorize it.
uvec2 weight_limbs(float distance) {
  const float scaled = exp_minus(min(distance, kMaxDistance)) * float(1u << kLimbBits);
  const uint high = uint(int(scaled));
  precise const float rest = (scaled - float(high)) * float(1u << kLimbBits);
  return uvec2(high, uint(int(rest)));
}

uint64_t join_limbs(uvec2 limbs) { return (uint64_t(limbs.x) << kLimbBits) + limbs.y; }

uint64_t weight_of(float distance) { return join_limbs(weight_limbs(distance)); }

// The high 64 bits of the product.
uint64_t multiply_high(uint64_t a, uint64_t b) {
  const uint64_t a_low = a & 0xfffffffful, a_high = a >> 32;
  const uint64_t b_low = b & 0xfffffffful, b_high = b >> 32;
  const uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  const uint64_t cross = a_low * b_high + (middle & 0xfffffffful);
  return a_high * b_high + (middle >> 32) + (cross >> 32);
}

#endif
