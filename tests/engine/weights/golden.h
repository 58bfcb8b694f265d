// The golden blocks that tools/make_golden_blocks.py writes; it documents the files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/weights/formats.h"

namespace hearth::test {

struct GoldenBlocks {
  std::uint32_t ggml_type = 0;
  std::uint32_t block_weights = 0;
  std::uint32_t block_bytes = 0;
  std::uint32_t quantized_blocks = 0;  // made from the golden rows; random blocks follow
  std::uint32_t random_blocks = 0;
  std::vector<std::byte> bytes;  // file layout
  std::vector<float> values;

  std::uint32_t blocks() const { return quantized_blocks + random_blocks; }
};

struct GoldenRows {
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  std::vector<float> values;

  std::span<const float> row(std::size_t i) const {
    return std::span(values).subspan(i * cols, cols);
  }
};

class GoldenReader {
 public:
  explicit GoldenReader(const std::string& name) {
    std::ifstream file(HEARTH_SOURCE_DIR "/tests/engine/weights/golden/" + name + ".bin",
                       std::ios::binary);
    EXPECT_TRUE(file) << "no golden file " << name;
    content_.assign(std::istreambuf_iterator<char>(file), {});
  }

  template <class T>
  std::vector<T> take(std::size_t count) {
    std::vector<T> items(count);
    EXPECT_LE(count * sizeof(T), content_.size() - at_) << "golden file is truncated";
    if (count * sizeof(T) <= content_.size() - at_)
      std::memcpy(items.data(), content_.data() + at_, count * sizeof(T));
    at_ += count * sizeof(T);
    return items;
  }

 private:
  std::vector<char> content_;
  std::size_t at_ = 0;
};

inline GoldenBlocks golden_blocks(WeightFormat format) {
  GoldenReader reader{std::string(format_info(format).header)};
  const auto header = reader.take<std::uint32_t>(5);
  GoldenBlocks golden{header[0], header[1], header[2], header[3], header[4], {}, {}};
  golden.bytes = reader.take<std::byte>(std::size_t{golden.blocks()} * golden.block_bytes);
  golden.values = reader.take<float>(std::size_t{golden.blocks()} * golden.block_weights);
  return golden;
}

inline GoldenRows golden_rows() {
  GoldenReader reader("rows");
  const auto header = reader.take<std::uint32_t>(2);
  GoldenRows rows{header[0], header[1], {}};
  rows.values = reader.take<float>(std::size_t{rows.rows} * rows.cols);
  return rows;
}

inline std::vector<WeightFormat> every_format() {
  std::vector<WeightFormat> formats;
  for (const FormatInfo& info : all_formats()) formats.push_back(info.format);
  return formats;
}

inline std::vector<WeightFormat> quantized_formats() {
  std::vector<WeightFormat> formats = every_format();
  std::erase_if(formats, [](WeightFormat format) { return format_info(format).is_float(); });
  return formats;
}

struct FormatName {
  std::string operator()(const ::testing::TestParamInfo<WeightFormat>& info) const {
    return std::string(format_info(info.param).header);
  }
};

}  // namespace hearth::test
