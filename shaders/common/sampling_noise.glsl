// The noise of a token: random, from a Gumbel distribution, and a pure function of the row's seed, its
// counter and the token. The token whose logit / temperature + noise is the largest is a draw from the
// softmax (the Gumbel-max trick). The noise does not depend on logits, so two models with the same seed
// and counter mostly draw the same token: a draft model is right about as often as it could be at all.
//
// Only additions and multiplications, all `precise`, and exact conversions, so that every kernel and
// every device that rounds these as IEEE 754 does has the same noise. Include after random.glsl.
#ifndef HEARTH_SAMPLING_NOISE_GLSL
#define HEARTH_SAMPLING_NOISE_GLSL

const float kNoiseLn2 = 0.69314718;
const float kNoiseUnit = 1.0 / 16777216.0;  // 2^-24
const float kLeastNoise = -3.2;  // less than any noise: that of bits 0xffffffff is -3.1

// The random bits of tokens 4 * quad to 4 * quad + 3.
uvec4 noise_bits(SamplingRow wanted, uint quad) {
  return philox(uvec4(wanted.counter, 0, quad, 0), uvec2(wanted.seed_low, wanted.seed_high));
}

uint noise_bits_of(SamplingRow wanted, uint id) { return noise_bits(wanted, id / 4)[id % 4]; }

// ln(1 + f) for f from sqrt(1/2) - 1 to sqrt(2) - 1, with a relative error of about 1e-7.
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

// -ln(-ln(1 - bits / 2^32)). What is taken the logarithm of keeps all its significant bits: near 0 it is
// found from `bits`, otherwise from what is missing to 1.
float noise_of(uint bits) {
  const bool small = bits < 0x4b000000u;  // below 1 - sqrt(1/2)
  const uint part = max(small ? bits : ~bits, 1u);
  const int leading = 31 - findMSB(part);
  // 24 bits, so the conversion is exact.
  const float mantissa = float(int((part << leading) >> 8)) * kNoiseUnit;
  const float fraction = mantissa * uintBitsToFloat(uint(127 - leading) << 23);
  const float exponential =
      small ? -log_near_one(-fraction) : -log_of_parts(mantissa, -leading);
  const uint word = floatBitsToUint(exponential);
  return -log_of_parts(uintBitsToFloat((word & 0x007fffffu) | 0x3f000000u), int(word >> 23) - 126);
}

// An upper bound of noise_of(), without a logarithm.
float most_noise(uint bits) { return float(32 - findMSB(bits | 1)) * kNoiseLn2 + 0.001; }

#endif
