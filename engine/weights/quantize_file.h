// Converts a GGUF file to another weight format. Everything but the weights of some tensors stays
// the same.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string_view>

#include "engine/weights/gguf_file.h"
#include "engine/weights/quantize_mix.h"
#include "runtime/result.h"

namespace hearth {

struct QuantizeReport {
  std::uint64_t tensors = 0, parameters = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;               // of all tensors
  std::map<std::string_view, std::uint64_t> formats = {};  // number of tensors in each format
};

// Called before each tensor and before each batch of rows of it. Return false to stop.
using QuantizeProgress =
    std::function<bool(const ModelTensor& tensor, WeightFormat to, std::uint64_t index)>;

// Weights that are already quantized are decoded and quantized again, unless their format stays the
// same. `out` appears when it is complete; it must not be one of the model's own files. Needs
// memory for some rows per thread, not for the model. REQUIRES: threads > 0.
Result<QuantizeReport> quantize_file(const GgufFile& model, const std::filesystem::path& out,
                                     const QuantizeType& type, unsigned threads,
                                     const QuantizeProgress& progress = {});

}  // namespace hearth
