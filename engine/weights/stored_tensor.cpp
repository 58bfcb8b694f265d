#include "engine/weights/stored_tensor.h"

#include <cstring>

namespace hearth {
namespace {

constexpr std::uint64_t kNibbleBytes = 16;  // of a block of MXFP4

// From nibbles of neighbours in one byte to those of weights 16 apart.
void gather_mxfp4_block(const std::byte* nibbles, std::byte exponent, std::byte* out) {
  out[0] = exponent;
  const auto nibble = [&](std::uint64_t weight) {
    return (nibbles[weight / 2] >> (weight % 2 * 4)) & std::byte{15};
  };
  for (std::uint64_t i = 0; i < kNibbleBytes; ++i)
    out[1 + i] = nibble(i) | (nibble(i + kNibbleBytes) << 4);
}

void read_mxfp4_row(const ModelTensor& tensor, std::uint64_t stored_row, std::byte* out) {
  const FormatInfo& info = format_info(tensor.format);
  const std::uint64_t blocks = tensor.cols / info.block_weights;
  const std::byte* nibbles = tensor.bytes.data() + stored_row * blocks * kNibbleBytes;
  const std::byte* exponents = tensor.strides->exponents.data() + stored_row * blocks;
  for (std::uint64_t block = 0; block < blocks; ++block)
    gather_mxfp4_block(nibbles + block * kNibbleBytes, exponents[block],
                       out + block * info.block_bytes);
}

}  // namespace

void read_tensor_rows(const ModelTensor& tensor, std::uint64_t first, std::uint64_t count,
                      std::span<std::byte> out) {
  const FormatInfo& info = format_info(tensor.format);
  const std::uint64_t row_bytes = tensor.cols / info.block_weights * info.block_bytes;
  if (!tensor.strides) {
    std::memcpy(out.data(), tensor.bytes.data() + first * row_bytes, count * row_bytes);
    return;
  }
  const TensorStrides& strides = *tensor.strides;
  const std::uint64_t matrix_rows = tensor.rows / tensor.matrices;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t row = first + i;
    const std::uint64_t begin =
        strides.first + row / matrix_rows * strides.matrix + row % matrix_rows * strides.row;
    std::byte* to = out.data() + i * row_bytes;
    if (!strides.exponents.empty()) {
      read_mxfp4_row(tensor, begin, to);
      continue;
    }
    for (std::uint64_t c = 0; c < tensor.cols; ++c)
      std::memcpy(to + c * info.block_bytes,
                  tensor.bytes.data() + (begin + c * strides.col) * info.block_bytes,
                  info.block_bytes);
  }
}

}  // namespace hearth
