// A GGUF file in another format: all but some of the tensors' weights stays as it is.
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
  std::uint64_t bytes_in = 0, bytes_out = 0;               // of the tensors
  std::map<std::string_view, std::uint64_t> formats = {};  // how many tensors have which
};

// Called before each tensor, and before each of the pieces that it is converted in: whether to go
// on.
using QuantizeProgress =
    std::function<bool(const ModelTensor& tensor, WeightFormat to, std::uint64_t index)>;

// Weights that are quantized already are decoded and quantized again, except to what they are.
// `out` appears when it is whole; it must not be (a part of) the model itself. Takes memory for
// some rows of each thread, not for the model. REQUIRES: threads > 0.
Result<QuantizeReport> quantize_file(const GgufFile& model, const std::filesystem::path& out,
                                     const QuantizeType& type, unsigned threads,
                                     const QuantizeProgress& progress = {});

}  // namespace hearth
