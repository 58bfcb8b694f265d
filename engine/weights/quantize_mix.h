// Which format each tensor of a model gets. A type like Q4_K_M is a base format plus rules for the
// tensors that matter more than others. The rules are llama.cpp's, so that files have the size and
// quality people expect. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/weights/formats.h"
#include "engine/weights/model_file.h"

namespace hearth {

struct QuantizeType {
  std::string_view name;    // "Q4_K_M"
  WeightFormat base;        // for all tensors without a rule
  std::uint32_t file_type;  // GGUF's number for "general.file_type"
};

// Ignores case. Q3_K, Q4_K and Q5_K mean the mixes that end in _M.
std::optional<QuantizeType> find_quantize_type(std::string_view name);
// "F32, F16, ..."
std::string quantize_type_names();

// What the rules depend on besides the tensor itself.
struct MixModel {
  std::uint64_t layers = 0;
  std::uint64_t heads_per_kv_head = 1;
  std::uint64_t experts = 0;
  bool has_output = false;  // whether the output matrix is separate from the embedding
};

// The format for a tensor. Vectors, norms and everything that is not a weight matrix keep their
// own.
WeightFormat mixed_format(const QuantizeType& type, const MixModel& model,
                          const ModelTensor& tensor);

}  // namespace hearth
