// The noise of a token is a random number with a Gumbel distribution. It depends only on the row's seed,
// the row's counter and the token. The token whose logit / temperature + noise is the largest is a draw from the
// softmax (the Gumbel-max trick). The noise does not depend on logits, so two models with the same seed
// and counter draw the same token nearly as often as their distributions allow.
//
// Only additions and multiplications, all `precise`, and exact conversions, so that every kernel and
// every device that rounds these as IEEE 754 does has the same noise.
#ifndef HEARTH_SAMPLING_NOISE_GLSL
#define HEARTH_SAMPLING_NOISE_GLSL
#include "common/random.glsl"
#include "params/sampling.h"

const float kNoiseLn2 = 0.69314718;
const float kMantissaUnit = 1.0 / 16777216.0;  // 2^-24
const float kLeastNoise = -3.2;                // less than any noise: that of bits 0xffffffff is -3.13

// The random bits of tokens 4 * quad to 4 * quad + 3.
uvec4 noise_bits(SamplingRow wanted, uint quad) {
  return philox(uvec4(wanted.counter, 0, quad, 0), uvec2(wanted.seed_low, wanted.seed_high));
}

uint noise_bits_of(SamplingRow wanted, uint id) { return noise_bits(wanted, id / 4)[id % 4]; }

// ln(1 + f) for f from -0.293 to 0.4143, with a relative error of about 1e-7.
float log_near_one(float f) {
  precise float p = -0.0790274377;
  p = p * f + 0.126223198;
  p = p * f - 0.129981838;
  p = p * f + 0.142144959;
  p = p * f - 0.166412815;
  p = p * f + 0.200010451;
  p = p * f - 0.250003064;
  p = p * f + 0.333333307;
  precise const float square = f * f;
  precise const float rest = p * f - 0.5;
  precise const float result = rest * square + f;
  return result;
}

// ln(mantissa * 2^exponent), for a mantissa from 0.5 to 1.
float log_of_parts(float mantissa, int exponent) {
  const bool low = mantissa < 0.70710678;
  precise const float f = (low ? 2.0 * mantissa : mantissa) - 1.0;
  precise const float result = float(low ? exponent - 1 : exponent) * kNoiseLn2 + log_near_one(f);
  return result;
}

// -ln(-ln(1 - (bits + 1/2) / 2^32)). The inner logarithm keeps its significant bits: small fractions are
// taken as they are, of larger ones what is missing to 1.
float noise_of(uint bits) {
  const bool small = bits < 0x4b000000u;  // below 1 - sqrt(1/2)
  const uint part = small ? bits : ~bits;
  const bool has_half = part < 0x80000000u;  // otherwise the half is beyond the 24 bits of a float
  const uint scaled = has_half ? 2 * part + 1 : part;
  const int leading = 31 - findMSB(scaled);
  const int exponent = has_half ? -leading - 1 : -leading;
  const float mantissa = float(int((scaled << leading) >> 8)) * kMantissaUnit;
  const float fraction = mantissa * uintBitsToFloat(uint(127 + exponent) << 23);
  const float exponential = small ? -log_near_one(-fraction) : -log_of_parts(mantissa, exponent);
  const uint word = floatBitsToUint(exponential);
  return -log_of_parts(uintBitsToFloat((word & 0x007fffffu) | 0x3f000000u), int(word >> 23) - 126);
}

// An upper bound of noise_of(), without a logarithm.
float most_noise(uint bits) { return float(32 - findMSB(bits)) * kNoiseLn2 + 0.001; }

#endif
