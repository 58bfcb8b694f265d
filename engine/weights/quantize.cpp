#include "engine/weights/quantize.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <string>

#include "engine/weights/quantize_blocks.h"

namespace hearth {
namespace {

struct Quantizer {
  WeightFormat format;
  QuantizeBlock quantize;
};

constexpr std::array<Quantizer, kWeightFormatCount> kQuantizers = {{
    {WeightFormat::kF32, quantize_f32},
    {WeightFormat::kF16, quantize_f16},
    {WeightFormat::kBf16, quantize_bf16},
    {WeightFormat::kQ8_0, quantize_q8_0},
    {WeightFormat::kQ4_0, quantize_q4_0},
    {WeightFormat::kQ4_1, quantize_q4_1},
    {WeightFormat::kQ5_0, quantize_q5_0},
    {WeightFormat::kQ5_1, quantize_q5_1},
    {WeightFormat::kQ2K, quantize_q2_k},
    {WeightFormat::kQ3K, quantize_q3_k},
    {WeightFormat::kQ4K, quantize_q4_k},
    {WeightFormat::kQ5K, quantize_q5_k},
    {WeightFormat::kQ6K, quantize_q6_k},
    {WeightFormat::kIq4Nl, quantize_iq4_nl},
    {WeightFormat::kIq4Xs, quantize_iq4_xs},
    {WeightFormat::kMxfp4, quantize_mxfp4},
}};

}  // namespace

Status quantize_row(WeightFormat format, std::span<const float> row, std::span<std::byte> out) {
  const FormatInfo& info = format_info(format);
  assert(row.size() % info.block_weights == 0);
  assert(out.size() == row.size() / info.block_weights * info.block_bytes);
  if (!info.is_float()) {
    const auto bad =
        std::find_if_not(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
    if (bad != row.end())
      return Error{ErrorKind::kInvalid, "weight " + std::to_string(bad - row.begin()) +
                                            " is not a finite number and cannot become " +
                                            std::string(info.name)};
  }
  const Quantizer& quantizer = kQuantizers[static_cast<std::size_t>(format)];
  assert(quantizer.format == format);
  const std::size_t blocks = row.size() / info.block_weights;
  for (std::size_t i = 0; i < blocks; ++i)
    quantizer.quantize(row.data() + i * info.block_weights, out.data() + i * info.block_bytes);
  return {};
}

}  // namespace hearth
