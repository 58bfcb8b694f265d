// The weight formats: what their blocks look like in a GGUF file and on the device, and a reference
// decoder for the device layout.
//
// Everything about a format comes from its header in shaders/quant, which kernels also include:
// decoding here runs the same code as they do. All functions are pure and may be called from any
// thread.
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

// A piece is this many consecutive weights of a row, the unit in which kernels unpack weights.
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
  std::uint32_t block_bytes;    // in the file, and on the device without the padding between planes
  std::uint32_t piece_scales;   // 0: float format; 1: one scale per piece; 2: one per 16 weights
  bool has_offset;              // weight = scale * q + offset rather than scale * q
  std::span<const std::uint32_t> plane_bytes;  // bytes per block in each plane
  std::span<const quant::Field> fields;        // where each byte of a file block goes (repack)

  bool is_float() const { return piece_scales == 0; }
};

// In the order of the enumeration.
std::span<const FormatInfo> all_formats();

const FormatInfo& format_info(WeightFormat format);

// Empty if the type is not a supported weight format.
std::optional<WeightFormat> format_from_ggml_type(std::uint32_t ggml_type);
// Ignores case.
std::optional<WeightFormat> parse_format(std::string_view name);

// Where the planes of a matrix are in its device layout: plane p holds its field of every block, in
// file order, starting at byte offset[p]. Planes follow each other; offsets and total_bytes are
// rounded up to kPlaneAlignment.
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

// 32 weights as integer kernels use them: weight i = scale[i / 16] * q[i] + offset[i / 16].
struct WeightPiece {
  std::int8_t q[kPieceWeights];
  float scale[2];
  float offset[2];  // zero unless the format has_offset
};

// Unpacks piece `piece` of a matrix in device layout, counted along the rows. REQUIRES: not a float
// format; piece < rows * cols / 32.
WeightPiece unpack_piece(WeightFormat format, const std::byte* device, const MatrixShape& shape,
                         std::uint64_t piece);

}  // namespace hearth
