// Which format each tensor of a model gets: a type like Q4_K_M is a base format and rules for the
// tensors that matter more than others. The rules are llama.cpp's, so that files are of the size
// and quality people know. Pure: any thread.
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
  WeightFormat base;        // of all tensors without a rule
  std::uint32_t file_type;  // GGUF's number for "general.file_type"
};

// Upper and lower case are the same; Q3_K, Q4_K and Q5_K are the mixes that end in _M.
std::optional<QuantizeType> find_quantize_type(std::string_view name);
// "F32, F16, ..."
std::string quantize_type_names();

// What the rules look at besides a tensor itself.
struct MixModel {
  std::uint64_t layers = 0;
  std::uint64_t heads_per_kv_head = 1;
  bool has_output = false;  // an output matrix apart from the embedding
};

// The format for a tensor: its own for vectors, norms and whatever is no weight.
WeightFormat mixed_format(const QuantizeType& type, const MixModel& model,
                          const ModelTensor& tensor);

}  // namespace hearth
