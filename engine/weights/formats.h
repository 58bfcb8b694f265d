// The weight formats: what a block of each looks like in a GGUF file and on the device, and the
// reference that decodes the device layout.
//
// Everything known about a format comes from its header in shaders/quant, which kernels compile
// too: decoding here runs the very code that they run. All functions are pure and may be called
// from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace hearth {

enum class WeightFormat : std::uint8_t {
  kF32,
  kF16,
  kBf16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2K,
  kQ3K,
  kQ4K,
  kQ5K,
  kQ6K,
  kIq4Nl,
  kIq4Xs,
  kMxfp4,
};
inline constexpr std::size_t kWeightFormatCount = 16;

// The unit in which kernels read weights: this many consecutive ones of a row.
inline constexpr std::uint32_t kPieceWeights = 32;

// Every plane of a matrix in device layout begins at a multiple of this.
inline constexpr std::uint64_t kPlaneAlignment = 16;
inline constexpr std::size_t kMaxPlanes = 5;

namespace quant {
struct Field;
}

struct FormatInfo {
  WeightFormat format;
  std::string_view name;    // as GGUF tools spell it: "Q4_K"
  std::string_view header;  // of shaders/quant, without .h: "q4_k"
  std::uint32_t ggml_type;
  std::uint32_t block_weights;  // a row is a whole number of blocks
  std::uint32_t block_bytes;    // in the file; on the device too, padding between planes aside
  std::uint32_t piece_scales;   // 0: float format; 1: one scale a piece; 2: one for each 16 weights
  bool has_offset;              // weight = scale * q + offset rather than scale * q
  std::span<const std::uint32_t> plane_bytes;  // bytes a block in each plane
  std::span<const quant::Field> fields;        // which bytes of the file's block go where (repack)

  bool is_float() const { return piece_scales == 0; }
};

// In the order of the enumeration.
std::span<const FormatInfo> all_formats();

const FormatInfo& format_info(WeightFormat format);

// Nothing where this is no weight format of ours.
std::optional<WeightFormat> format_from_ggml_type(std::uint32_t ggml_type);
// Upper and lower case are the same.
std::optional<WeightFormat> parse_format(std::string_view name);

// Where the planes of a matrix lie in its device layout: plane p holds its field of every block, in
// file order, from byte offset[p] on; offsets are the smallest multiples of kPlaneAlignment that do
// not overlap, and so is total_bytes.
struct DeviceLayout {
  std::uint64_t blocks = 0;
  std::uint64_t offset[kMaxPlanes] = {};
  std::uint64_t total_bytes = 0;
};
DeviceLayout device_layout(WeightFormat format, std::uint64_t blocks);

// Shape of a matrix. REQUIRES: cols is a whole number of blocks; fewer than 2^32 blocks in all.
struct MatrixShape {
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
};

// Decodes one row, cols floats, of a matrix in device layout.
// REQUIRES: row < shape.rows; `device` holds device_layout(...).total_bytes.
void dequantize_row(WeightFormat format, const std::byte* device, const MatrixShape& shape,
                    std::uint64_t row, float* out);

// 32 weights as integer kernels see them, in order: weight i = scale[i / 16] * q[i] + offset[i /
// 16].
struct WeightPiece {
  std::int8_t q[kPieceWeights];
  float scale[2];
  float offset[2];  // zero unless the format has_offset
};

// Unpacks piece `piece` of a matrix in device layout, counting 32 weights a piece along the rows.
// REQUIRES: a format that is no float format; piece < rows * cols / 32.
WeightPiece unpack_piece(WeightFormat format, const std::byte* device, const MatrixShape& shape,
                         std::uint64_t piece);

}  // namespace hearth
