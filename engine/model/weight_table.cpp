#include "engine/model/weight_table.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "engine/ops/experts.h"
#include "engine/ops/matmul.h"
#include "runtime/rounding.h"

namespace hearth {
namespace {

Error bad(const ModelFile& file, std::string what) {
  return {ErrorKind::kInvalid, fmt::format("{}: {}", file.name(), what)};
}

Status check_part(const WeightSpec& spec, const WeightPart& part, const ModelTensor& tensor,
                  const ModelFile& file) {
  const bool vector = spec.is_vector && spec.experts == 0;
  const uint64_t rows = vector ? 1 : part.rows;
  const uint64_t cols = vector ? part.rows : spec.cols;
  if (tensor.rows != rows || tensor.cols != cols)
    return bad(file, fmt::format("tensor {} is {} x {}, but the model needs {} x {}", tensor.name,
                                 tensor.rows, tensor.cols, rows, cols));
  const FormatInfo& format = format_info(tensor.format);
  if (spec.is_vector && !format.is_float())
    return bad(file, fmt::format("tensor {} is {}, but norms and biases must be floats",
                                 tensor.name, format.name));
  const uint32_t unit = format.is_float() ? kFloatInputUnit : format.block_weights;
  if (!spec.is_vector && cols % unit != 0)
    return bad(file, fmt::format("tensor {}: rows of {} weights are not a multiple of {}",
                                 tensor.name, cols, unit));
  return {};
}

// The kernels read an expert's matrix in one format.
Status check_same_format(const WeightSpec& spec, const ModelFile& file) {
  const ModelTensor* const first = file.find(spec.parts.front().tensor);
  for (const WeightPart& part : spec.parts) {
    const ModelTensor* const tensor = file.find(part.tensor);
    if (tensor->format != first->format)
      return bad(file, fmt::format("tensor {} is {}, but {} is {}: gates and ups of experts must "
                                   "have the same format",
                                   tensor->name, format_info(tensor->format).name, first->name,
                                   format_info(first->format).name));
  }
  return {};
}

}  // namespace

std::string layer_tensor(uint32_t layer, std::string_view name) {
  return fmt::format("blk.{}.{}", layer, name);
}

void WeightTable::matrix(WeightRole role, uint32_t layer, std::vector<WeightPart> parts,
                         uint64_t cols) {
  specs_.push_back({.role = role, .layer = layer, .parts = std::move(parts), .cols = cols});
}

void WeightTable::optional_matrix(WeightRole role, uint32_t layer, std::vector<WeightPart> parts,
                                  uint64_t cols) {
  matrix(role, layer, std::move(parts), cols);
  specs_.back().optional = true;
}

void WeightTable::vector(WeightRole role, uint32_t layer, std::vector<WeightPart> parts) {
  specs_.push_back({.role = role, .layer = layer, .parts = std::move(parts), .is_vector = true});
}

void WeightTable::optional_vector(WeightRole role, uint32_t layer, std::vector<WeightPart> parts) {
  vector(role, layer, std::move(parts));
  specs_.back().optional = true;
}

void WeightTable::f32_matrix(WeightRole role, uint32_t layer, WeightPart part, uint64_t cols) {
  matrix(role, layer, {std::move(part)}, cols);
  specs_.back().in_f32 = true;
}

void WeightTable::expert_matrices(WeightRole role, uint32_t layer, const ExpertMatrices& matrices) {
  WeightSpec spec{.role = role,
                  .layer = layer,
                  .cols = matrices.cols,
                  .experts = matrices.experts,
                  .projections = static_cast<uint32_t>(matrices.projections.size())};
  for (const std::string_view name : matrices.projections) {
    if (!matrices.split)
      spec.parts.push_back({layer_tensor(layer, fmt::format("{}_exps.weight", name)),
                            matrices.experts * matrices.rows});
    for (uint32_t expert = 0; matrices.split && expert < matrices.experts; ++expert)
      spec.parts.push_back(
          {layer_tensor(layer, fmt::format("{}.{}.weight", name, expert)), matrices.rows});
  }
  specs_.push_back(std::move(spec));
}

void WeightTable::optional_expert_biases(WeightRole role, uint32_t layer,
                                         const ExpertMatrices& matrices) {
  WeightSpec spec{.role = role,
                  .layer = layer,
                  .cols = matrices.rows,
                  .is_vector = true,
                  .optional = true,
                  .experts = matrices.experts,
                  .projections = static_cast<uint32_t>(matrices.projections.size())};
  for (const std::string_view name : matrices.projections)
    spec.parts.push_back(
        {layer_tensor(layer, fmt::format("{}_exps.bias", name)), matrices.experts});
  specs_.push_back(std::move(spec));
}

Status WeightTable::check(const ModelFile& file) const {
  std::set<std::string_view> wanted(known_.begin(), known_.end());
  for (const WeightSpec& spec : specs_) {
    const auto is_there = [&](const WeightPart& part) { return file.find(part.tensor) != nullptr; };
    const bool skip = spec.optional && std::ranges::none_of(spec.parts, is_there);
    for (const WeightPart& part : spec.parts) {
      wanted.insert(part.tensor);
      if (skip) continue;
      const ModelTensor* tensor = file.find(part.tensor);
      if (tensor == nullptr) return bad(file, fmt::format("tensor {} is missing", part.tensor));
      HEARTH_TRY(check_part(spec, part, *tensor, file));
    }
    if (spec.experts > 0 && !skip) HEARTH_TRY(check_same_format(spec, file));
  }
  for (const ModelTensor& tensor : file.tensors())
    if (!wanted.contains(tensor.name))
      return bad(file, fmt::format("tensor {} is unknown to this architecture", tensor.name));
  return {};
}

uint64_t SegmentPlan::expert_stride() const {
  constexpr uint64_t kAlignment = 256;
  const uint64_t blocks = expert_rows() * cols / format_info(format).block_weights;
  return round_up(device_layout(format, blocks).total_bytes, kAlignment);
}

uint64_t SegmentPlan::device_bytes() const {
  if (is_expert_bias) return rows * cols * 4 + kBiasPadBytes;
  if (experts > 0) return experts * expert_stride();
  return device_layout(format, rows * cols / format_info(format).block_weights).total_bytes;
}

namespace {

// All in one segment: their formats are the same.
std::vector<SegmentPlan> plan_experts(const WeightSpec& spec, const ModelFile& file) {
  SegmentPlan segment{.cols = spec.cols,
                      .first_col = spec.first_col,
                      .experts = spec.experts,
                      .projections = spec.projections,
                      .is_expert_bias = spec.is_vector};
  for (const WeightPart& part : spec.parts) {
    const ModelTensor* const tensor = file.find(part.tensor);
    if (tensor == nullptr) return {};
    if (!spec.is_vector) segment.format = tensor->format;
    segment.rows += part.rows;
    segment.tensors.push_back({tensor, part.first_row, part.rows});
  }
  return {segment};
}

}  // namespace

std::vector<SegmentPlan> plan_segments(const WeightSpec& spec, const ModelFile& file) {
  if (spec.experts > 0) return plan_experts(spec, file);
  std::vector<SegmentPlan> segments;
  for (const WeightPart& part : spec.parts) {
    const ModelTensor* tensor = file.find(part.tensor);
    if (tensor == nullptr) return {};
    const bool in_f32 = spec.is_vector || (spec.in_f32 && format_info(tensor->format).is_float());
    const WeightFormat format = in_f32 ? WeightFormat::kF32 : tensor->format;
    if (segments.empty() || (!spec.is_vector && segments.back().format != format))
      segments.push_back(
          {.format = format, .cols = spec.is_vector ? 0 : spec.cols, .first_col = spec.first_col});
    SegmentPlan& segment = segments.back();
    segment.tensors.push_back({tensor, part.first_row, part.rows});
    if (spec.is_vector) {
      segment.rows = 1;
      segment.cols += part.rows;
    } else {
      segment.rows += part.rows;
    }
  }
  return segments;
}

}  // namespace hearth
