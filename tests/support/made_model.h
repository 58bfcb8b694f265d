// A model of any architecture, made up from its weight table: either only its header, which is
// enough to plan steps with, or with random weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/model/architecture.h"
#include "engine/weights/model_file.h"
#include "engine/weights/quantize.h"
#include "tests/support/compare.h"

namespace hearth::testing {

struct MadeModelInfo {
  std::string architecture = "llama";
  uint32_t layers = 2, width = 128, heads = 4, kv_heads = 2, head_size = 32, mlp_width = 256;
  uint32_t vocabulary = 160, context = 256;
  uint32_t experts = 0, used_experts = 0;
  bool optional_weights = false;  // biases, an output matrix of its own
  bool own_output = false;        // only the latter
  // The format of a matrix, by the name of its tensor.
  std::function<WeightFormat(const std::string&)> format = [](const std::string&) {
    return WeightFormat::kF16;
  };
};

// A small model of an architecture, with experts if it cannot do without them.
inline MadeModelInfo small_model(const std::string& architecture) {
  MadeModelInfo info{.architecture = architecture};
  if (architecture == "qwen3moe" || architecture == "gpt-oss") {
    info.experts = 4;
    info.used_experts = 2;
  }
  return info;
}

class MadeModel : public ModelFile {
 public:
  static Result<std::unique_ptr<MadeModel>> header(const MadeModelInfo& info) {
    std::unique_ptr<MadeModel> model(new MadeModel(info));
    HEARTH_TRY(model->add_tensors(info));
    return model;
  }

  // REQUIRES: formats that quantize_row() knows.
  static Result<std::unique_ptr<MadeModel>> random(const MadeModelInfo& info) {
    HEARTH_ASSIGN(std::unique_ptr<MadeModel> model, header(info));
    model->fill();
    return model;
  }

 private:
  explicit MadeModel(const MadeModelInfo& info) : ModelFile(FileKind::kGguf, info.architecture) {
    const auto set = [&](const char* key, uint64_t value) {
      metadata_.set(info.architecture + "." + key, value);
    };
    metadata_.set("general.architecture", info.architecture);
    set("block_count", info.layers);
    set("embedding_length", info.width);
    set("feed_forward_length", info.mlp_width);
    set("attention.head_count", info.heads);
    set("attention.head_count_kv", info.kv_heads);
    set("attention.key_length", info.head_size);
    set("attention.value_length", info.head_size);
    set("context_length", info.context);
    set("vocab_size", info.vocabulary);
    if (info.experts > 0) {
      set("expert_count", info.experts);
      set("expert_used_count", info.used_experts);
    }
    // Large, so that a norm with another one would show.
    metadata_.set(info.architecture + ".attention.layer_norm_rms_epsilon", 0.05);
  }

  Status add_tensors(const MadeModelInfo& info) {
    HEARTH_ASSIGN(const Architecture* architecture, find_architecture(*this));
    HEARTH_ASSIGN(const ModelConfig config, architecture->read_config(*this));
    const WeightTable table = architecture->weight_table(config);
    for (const WeightSpec& spec : table.specs()) {
      const bool wanted =
          info.optional_weights || (info.own_output && spec.role == WeightRole::kOutput);
      if (spec.optional && !wanted) continue;
      const bool vector = spec.is_vector && spec.experts == 0;
      for (const WeightPart& part : spec.parts)
        add(part.tensor, spec.is_vector ? WeightFormat::kF32 : info.format(part.tensor),
            vector ? 1 : part.rows, vector ? part.rows : spec.cols);
      if (spec.experts > 0) tensors_.back().matrices = spec.experts;
    }
    std::ranges::sort(tensors_, {}, &ModelTensor::name);
    return {};
  }

  // Only the size of the bytes counts until fill().
  void add(const std::string& name, WeightFormat format, uint64_t rows, uint64_t cols) {
    static const std::byte kNothing{};
    const FormatInfo& info = format_info(format);
    const uint64_t bytes = rows * cols / info.block_weights * info.block_bytes;
    tensors_.push_back({.name = name,
                        .format = format,
                        .rows = rows,
                        .cols = cols,
                        .bytes = {&kNothing, static_cast<size_t>(bytes)}});
  }

  void fill() {
    uint32_t seed = 0;
    for (ModelTensor& tensor : tensors_) {
      const bool vector = tensor.rows == 1;
      const float scale = vector ? 0.1f : 1.0f / std::sqrt(static_cast<float>(tensor.cols));
      std::vector<float> values = random_floats(tensor.rows * tensor.cols, ++seed, scale);
      if (vector && tensor.name.find("norm") != std::string::npos)
        for (float& value : values) value += 1;
      std::vector<std::byte>& bytes = contents_.emplace_back(tensor.bytes.size());
      if (tensor.format == WeightFormat::kF32) {
        std::memcpy(bytes.data(), values.data(), bytes.size());
      } else if (tensor.format == WeightFormat::kF16) {
        const std::vector<uint16_t> halves = to_half(values);
        std::memcpy(bytes.data(), halves.data(), bytes.size());
      } else {
        const size_t row_bytes = bytes.size() / tensor.rows;
        for (size_t row = 0; row < tensor.rows; ++row)
          EXPECT_TRUE(quantize_row(tensor.format,
                                   std::span(values).subspan(row * tensor.cols, tensor.cols),
                                   std::span(bytes).subspan(row * row_bytes, row_bytes))
                          .ok());
      }
      tensor.bytes = bytes;
    }
  }

  std::vector<std::vector<std::byte>> contents_;
};

}  // namespace hearth::testing
