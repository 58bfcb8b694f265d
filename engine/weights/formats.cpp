#include "engine/weights/formats.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <utility>

#include "runtime/rounding.h"
#include "shaders/quant/cpp.h"

// All format headers define the same names, so each gets a namespace. A new format needs three
// lines here, one in kFormats and one in the enumeration.
namespace hearth::quant {
namespace f32 {
#include "shaders/quant/f32.h"
}
namespace f16 {
#include "shaders/quant/f16.h"
}
namespace bf16 {
#include "shaders/quant/bf16.h"
}
namespace q8_0 {
#include "shaders/quant/q8_0.h"
}
namespace q4_0 {
#include "shaders/quant/q4_0.h"
}
namespace q4_1 {
#include "shaders/quant/q4_1.h"
}
namespace q5_0 {
#include "shaders/quant/q5_0.h"
}
namespace q5_1 {
#include "shaders/quant/q5_1.h"
}
namespace q2_k {
#include "shaders/quant/q2_k.h"
}
namespace q3_k {
#include "shaders/quant/q3_k.h"
}
namespace q4_k {
#include "shaders/quant/q4_k.h"
}
namespace q5_k {
#include "shaders/quant/q5_k.h"
}
namespace q6_k {
#include "shaders/quant/q6_k.h"
}
namespace iq4_nl {
#include "shaders/quant/iq4_nl.h"
}
namespace iq4_xs {
#include "shaders/quant/iq4_xs.h"
}
namespace mxfp4 {
#include "shaders/quant/mxfp4.h"
}
}  // namespace hearth::quant

namespace hearth {
namespace {

static_assert(kPieceWeights == quant::kPieceWeights);

// A matrix in device layout, in the form that the format headers expect.
struct Matrix {
  const std::byte* device;
  std::uint32_t blocks;
};

using DecodeRow = void (*)(const Matrix& matrix, const MatrixShape& shape, std::uint64_t row,
                           float* out);
using DecodePiece = quant::Piece (*)(const Matrix& matrix, std::uint32_t piece);

// Overload resolution finds the functions of a format header through the type of its Planes.
template <auto planes_at>
void decode_row(const Matrix& matrix, const MatrixShape& shape, std::uint64_t row, float* out) {
  const auto planes = planes_at(matrix.device, matrix.blocks);
  if constexpr (requires { load_weight(planes, 0u); }) {
    if (shape.cols % kPieceWeights != 0) {
      for (std::uint64_t col = 0; col < shape.cols; ++col)
        out[col] = load_weight(planes, static_cast<std::uint32_t>(row * shape.cols + col));
      return;
    }
  }
  const std::uint64_t row_pieces = shape.cols / kPieceWeights;
  for (std::uint64_t i = 0; i < row_pieces; ++i) {
    const quant::FloatPiece piece =
        unpack_float_piece(planes, static_cast<std::uint32_t>(row * row_pieces + i));
    static_assert(sizeof(piece) == kPieceWeights * sizeof(float));
    std::memcpy(out + i * kPieceWeights, &piece, sizeof(piece));
  }
}

// Null for float formats, which have no integers.
template <auto planes_at>
constexpr DecodePiece piece_decoder() {
  using Planes = decltype(planes_at(nullptr, 0u));
  if constexpr (requires(Planes planes) { unpack_piece(planes, 0u); }) {
    return [](const Matrix& matrix, std::uint32_t piece) {
      return unpack_piece(planes_at(matrix.device, matrix.blocks), piece);
    };
  } else {
    return nullptr;
  }
}

struct Format {
  FormatInfo info;
  DecodeRow decode_row;
  DecodePiece decode_piece;
};

#define HEARTH_FORMAT(format, space)                                                     \
  Format {                                                                               \
    {WeightFormat::format,       quant::space::kName,         #space,                    \
     quant::space::kGgmlType,    quant::space::kBlockWeights, quant::space::kBlockBytes, \
     quant::space::kPieceScales, quant::space::kHasOffset,    quant::space::kPlaneBytes, \
     quant::space::kFields},                                                             \
        decode_row<quant::space::planes_at>, piece_decoder<quant::space::planes_at>()    \
  }

constexpr std::array<Format, kWeightFormatCount> kFormats = {
    HEARTH_FORMAT(kF32, f32),     HEARTH_FORMAT(kF16, f16),      HEARTH_FORMAT(kBf16, bf16),
    HEARTH_FORMAT(kQ8_0, q8_0),   HEARTH_FORMAT(kQ4_0, q4_0),    HEARTH_FORMAT(kQ4_1, q4_1),
    HEARTH_FORMAT(kQ5_0, q5_0),   HEARTH_FORMAT(kQ5_1, q5_1),    HEARTH_FORMAT(kQ2K, q2_k),
    HEARTH_FORMAT(kQ3K, q3_k),    HEARTH_FORMAT(kQ4K, q4_k),     HEARTH_FORMAT(kQ5K, q5_k),
    HEARTH_FORMAT(kQ6K, q6_k),    HEARTH_FORMAT(kIq4Nl, iq4_nl), HEARTH_FORMAT(kIq4Xs, iq4_xs),
    HEARTH_FORMAT(kMxfp4, mxfp4),
};

#undef HEARTH_FORMAT

// Checks that the table is in the order of the enumeration, that planes hold whole blocks, and that
// every byte of a block has a place.
consteval bool formats_are_consistent() {
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    const FormatInfo& info = kFormats[i].info;
    if (static_cast<std::size_t>(info.format) != i || info.plane_bytes.size() > kMaxPlanes)
      return false;
    std::uint32_t plane_bytes = 0;
    std::uint32_t field_bytes = 0;
    for (const std::uint32_t bytes : info.plane_bytes) plane_bytes += bytes;
    for (const quant::Field& field : info.fields) field_bytes += field.bytes;
    if (plane_bytes != info.block_bytes || field_bytes != info.block_bytes) return false;
  }
  return true;
}
static_assert(formats_are_consistent());

constexpr auto kInfos = [] {
  std::array<FormatInfo, kWeightFormatCount> infos{};
  std::transform(kFormats.begin(), kFormats.end(), infos.begin(),
                 [](const Format& format) { return format.info; });
  return infos;
}();

const Format& entry(WeightFormat format) { return kFormats[static_cast<std::size_t>(format)]; }

Matrix matrix_of(WeightFormat format, const std::byte* device, const MatrixShape& shape) {
  const std::uint32_t block_weights = entry(format).info.block_weights;
  assert(shape.cols % block_weights == 0);
  const std::uint64_t blocks = shape.rows * (shape.cols / block_weights);
  assert(blocks <= UINT32_MAX);
  return {device, static_cast<std::uint32_t>(blocks)};
}

char upper(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }

}  // namespace

std::span<const FormatInfo> all_formats() { return kInfos; }

const FormatInfo& format_info(WeightFormat format) {
  return kInfos[static_cast<std::size_t>(format)];
}

std::optional<WeightFormat> format_from_ggml_type(std::uint32_t ggml_type) {
  for (const FormatInfo& info : kInfos)
    if (info.ggml_type == ggml_type) return info.format;
  return std::nullopt;
}

std::optional<WeightFormat> parse_format(std::string_view name) {
  const auto same = [](char a, char b) { return upper(a) == upper(b); };
  for (const FormatInfo& info : kInfos)
    if (std::ranges::equal(info.name, name, same)) return info.format;
  return std::nullopt;
}

DeviceLayout device_layout(WeightFormat format, std::uint64_t blocks) {
  const FormatInfo& info = format_info(format);
  DeviceLayout layout{.blocks = blocks};
  for (std::size_t plane = 0; plane < info.plane_bytes.size(); ++plane) {
    layout.offset[plane] = layout.total_bytes;
    const std::uint64_t end = layout.total_bytes + blocks * info.plane_bytes[plane];
    layout.total_bytes = round_up(end, kPlaneAlignment);
  }
  return layout;
}

void dequantize_row(WeightFormat format, const std::byte* device, const MatrixShape& shape,
                    std::uint64_t row, float* out) {
  assert(row < shape.rows);
  entry(format).decode_row(matrix_of(format, device, shape), shape, row, out);
}

WeightPiece unpack_piece(WeightFormat format, const std::byte* device, const MatrixShape& shape,
                         std::uint64_t piece) {
  const DecodePiece decode = entry(format).decode_piece;
  assert(decode != nullptr && piece < shape.rows * shape.cols / kPieceWeights);
  const quant::Piece unpacked =
      decode(matrix_of(format, device, shape), static_cast<std::uint32_t>(piece));
  WeightPiece result{{}, {unpacked.scale0, unpacked.scale1}, {unpacked.offset0, unpacked.offset1}};
  std::memcpy(result.q, unpacked.q, sizeof(result.q));
  for (std::size_t i = 0; i < kPieceWeights; i += 4) std::swap(result.q[i + 1], result.q[i + 2]);
  return result;
}

}  // namespace hearth
