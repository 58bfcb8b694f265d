#include "engine/weights/hugging_face/expert_tensors.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"
#include "engine/weights/safetensors.h"

namespace hearth::hugging_face {
namespace {

constexpr std::string_view kGateUp = "ffn_gate_up_exps", kDown = "ffn_down_exps";

Error misfit(const ModelTensor& tensor) {
  return {ErrorKind::kInvalid,
          fmt::format("tensor {} does not have the shape of experts", in_quotes(tensor.name))};
}

std::string replaced(std::string_view name, std::string_view from, std::string_view to) {
  std::string result(name);
  return result.replace(result.find(from), from.size(), to);
}

// A part of a tensor that holds `parts` of them, which take turns.
struct Turn {
  std::uint64_t first, parts;
  std::string_view name;  // of the tensor in GGUF
};

// Floats, [experts, inputs, outputs] in the file.
ModelTensor transposed(const ModelTensor& tensor, const Turn& turn, std::string_view from,
                       TensorStrides& strides) {
  const std::uint64_t inputs = tensor.rows / tensor.matrices, outputs = tensor.cols;
  ModelTensor part = tensor;
  part.name = replaced(tensor.name, from, turn.name);
  part.rows = tensor.matrices * (outputs / turn.parts);
  part.cols = inputs;
  strides = {.first = turn.first, .matrix = inputs * outputs, .row = turn.parts, .col = outputs};
  part.strides = &strides;
  return part;
}

// [experts, outputs] in the file.
ModelTensor bias_turn(const ModelTensor& tensor, const Turn& turn, std::string_view from,
                      TensorStrides& strides) {
  ModelTensor part = tensor;
  part.name = replaced(tensor.name, from, turn.name);
  part.cols = tensor.cols / turn.parts;
  strides = {.first = turn.first, .row = tensor.cols, .col = turn.parts};
  part.strides = &strides;
  return part;
}

// Blocks, [experts, outputs, inputs / 32, 16] bytes in the file, and exponents without the last.
Result<ModelTensor> joined(const ModelTensor& blocks, const ModelTensor& exponents,
                           const Turn& turn, std::string_view from, TensorStrides& strides) {
  const FormatInfo& info = format_info(WeightFormat::kMxfp4);
  const std::uint64_t nibble_bytes = info.block_bytes - 1, row_blocks = exponents.cols;
  const std::uint64_t rows = exponents.rows, experts = exponents.matrices;
  if (blocks.cols != nibble_bytes || blocks.rows != rows * row_blocks || rows % experts != 0 ||
      rows / experts % turn.parts != 0)
    return misfit(blocks);
  ModelTensor part{.name = replaced(blocks.name, from, turn.name),
                   .format = WeightFormat::kMxfp4,
                   .matrices = static_cast<std::uint32_t>(experts),
                   .rows = rows / turn.parts,
                   .cols = row_blocks * info.block_weights,
                   .bytes = blocks.bytes};
  part.name = replaced(part.name, kMxfp4Blocks, ".weight");
  strides = {.first = turn.first,
             .matrix = rows / experts,
             .row = turn.parts,
             .exponents = exponents.bytes};
  part.strides = &strides;
  return part;
}

}  // namespace

Status arrange_experts(std::vector<ModelTensor>& tensors, std::deque<TensorStrides>& strides) {
  std::vector<ModelTensor> arranged;
  for (const ModelTensor& tensor : tensors) {
    const bool gate_up = tensor.name.find(kGateUp) != std::string::npos;
    const bool blocks = tensor.name.ends_with(kMxfp4Blocks);
    const bool bias = tensor.name.ends_with(".bias");
    const bool down = tensor.name.find(kDown) != std::string::npos;
    if (tensor.name.ends_with(kMxfp4Exponents)) continue;  // joined with the blocks
    if (!gate_up && !(down && !bias)) {
      arranged.push_back(tensor);
      continue;
    }
    const std::string_view from = gate_up ? kGateUp : kDown;
    const std::vector<Turn> turns =
        gate_up ? std::vector<Turn>{{0, 2, "ffn_gate_exps"}, {1, 2, "ffn_up_exps"}}
                : std::vector<Turn>{{0, 1, kDown}};
    for (const Turn& turn : turns) {
      if (blocks) {
        const std::string other = replaced(tensor.name, kMxfp4Blocks, kMxfp4Exponents);
        const auto exponents = std::ranges::find(tensors, other, &ModelTensor::name);
        if (exponents == tensors.end()) return misfit(tensor);
        HEARTH_ASSIGN(arranged.emplace_back(),
                      joined(tensor, *exponents, turn, from, strides.emplace_back()));
      } else if (tensor.cols % turn.parts != 0) {
        return misfit(tensor);
      } else {
        TensorStrides& own = strides.emplace_back();
        arranged.push_back(bias ? bias_turn(tensor, turn, from, own)
                                : transposed(tensor, turn, from, own));
      }
    }
  }
  // Exponents whose blocks are missing stay, so that the loader refuses them by name.
  for (const ModelTensor& tensor : tensors) {
    if (!tensor.name.ends_with(kMxfp4Exponents)) continue;
    const std::string other = replaced(tensor.name, kMxfp4Exponents, kMxfp4Blocks);
    if (std::ranges::find(tensors, other, &ModelTensor::name) == tensors.end())
      arranged.push_back(tensor);
  }
  tensors = std::move(arranged);
  return {};
}

}  // namespace hearth::hugging_face
