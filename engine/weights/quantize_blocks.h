// Quantizes one block of each format, for quantize.cpp: reads block_weights finite floats from x
// and writes block_bytes to block, in file layout.
#pragma once

#include <cstddef>
#include <cstring>

namespace hearth {

// Copies a field of a block into its place, which may be unaligned.
template <class T>
void put(std::byte* to, const T& value) {
  std::memcpy(to, &value, sizeof(value));
}

using QuantizeBlock = void (*)(const float* x, std::byte* block);

void quantize_f32(const float* x, std::byte* block);
void quantize_f16(const float* x, std::byte* block);
void quantize_bf16(const float* x, std::byte* block);
void quantize_q8_0(const float* x, std::byte* block);
void quantize_q4_0(const float* x, std::byte* block);
void quantize_q4_1(const float* x, std::byte* block);
void quantize_q5_0(const float* x, std::byte* block);
void quantize_q5_1(const float* x, std::byte* block);
void quantize_q2_k(const float* x, std::byte* block);
void quantize_q3_k(const float* x, std::byte* block);
void quantize_q4_k(const float* x, std::byte* block);
void quantize_q5_k(const float* x, std::byte* block);
void quantize_q6_k(const float* x, std::byte* block);
void quantize_iq4_nl(const float* x, std::byte* block);
void quantize_iq4_xs(const float* x, std::byte* block);
void quantize_mxfp4(const float* x, std::byte* block);

}  // namespace hearth
