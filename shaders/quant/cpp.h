// Prelude of the weight formats for C++: the GLSL types, built-ins and loads that the format headers
// use, under their GLSL names, and the description of the file layout that only C++ needs. glsl.h is
// its counterpart. Include this, then each format header inside its own namespace within hearth::quant
// (engine/weights/formats.cpp does).
//
// The code assumes a little-endian machine, as GGUF files do.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hearth::quant {

static_assert(std::endian::native == std::endian::little);

using uint = std::uint32_t;
using std::uint64_t;
struct vec2 {
  float x, y;
};
struct vec4 {
  float x, y, z, w;
};
struct uvec2 {
  uint x, y;
};
struct uvec4 {
  uint x, y, z, w;
};

#define QUANT_INLINE inline
#define QUANT_CONST constexpr
#define QUANT_UNROLL

// The address where one field of every block begins. Loads take the index of an element of their
// own size and need no alignment here.
using Plane = const std::byte*;

template <class T>
inline T load_element(Plane plane, uint index) {
  T value;
  std::memcpy(&value, plane + std::size_t{index} * sizeof(T), sizeof(T));
  return value;
}
inline uvec4 load_16b(Plane plane, uint index) { return load_element<uvec4>(plane, index); }
inline uvec2 load_8b(Plane plane, uint index) { return load_element<uvec2>(plane, index); }
inline uint load_u32(Plane plane, uint index) { return load_element<uint>(plane, index); }
inline uint load_u16(Plane plane, uint index) { return load_element<std::uint16_t>(plane, index); }

inline float uintBitsToFloat(uint bits) { return std::bit_cast<float>(bits); }

// IEEE half to float, exact for every bit pattern: subnormals, infinities and NaN included.
inline float half_bits_to_float(uint bits) {
  const uint sign = (bits & 0x8000u) << 16;
  const uint magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return uintBitsToFloat(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // Read as a float with the same fields, the exponent is 112 too low; the product also normalizes
  // subnormals.
  const float value = uintBitsToFloat(magnitude << 13) * 0x1p112f;
  return uintBitsToFloat(sign | std::bit_cast<uint>(value));
}
inline vec2 unpackHalf2x16(uint bits) {
  return {half_bits_to_float(bits & 0xffffu), half_bits_to_float(bits >> 16)};
}

inline int bitfieldExtract(int value, int offset, int bits) {
  return static_cast<int>(static_cast<uint>(value) << (32 - offset - bits)) >> (32 - bits);
}

// The order of a field's bits in the file. On the device the quants of every format are in the order of
// piece.h; engine/weights/repack.cpp converts each order in both directions.
enum class FieldOrder {
  kBytes,        // as on the device: scales and the like
  kWeightBytes,  // as on the device except for the order of bytes in a word
  kNibblePairs,  // 32 bytes hold pieces 0 and 1: low nibbles, high nibbles
  kNibbleFours,  // 64 bytes hold four pieces: low nibbles of the first 32 bytes, of the last 32,
                 // high nibbles of the first, of the last
  kTwoBits,      // 32 bytes hold four pieces, two bits of each byte for every piece
  kOneBits,      // 32 bytes hold eight pieces, one bit of each byte for every piece
  kWordBits,     // 4 bytes hold one piece, bit i for weight i
};
inline constexpr std::size_t kFieldOrderCount = 7;

// One field of a block: its position in the file's block and in its plane's element.
struct Field {
  uint plane;
  uint plane_offset;  // bytes
  uint file_offset;   // bytes
  uint bytes;
  FieldOrder order;
};

}  // namespace hearth::quant

#include "shaders/quant/piece.h"
