#include "engine/model/weight_table.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "engine/ops/kernel_choice.h"

namespace hearth {
namespace {

Error bad(const ModelFile& file, std::string what) {
  return {ErrorKind::kInvalid, fmt::format("{}: {}", file.name(), what)};
}

Status check_part(const WeightSpec& spec, const WeightPart& part, const ModelTensor& tensor,
                  const ModelFile& file) {
  const uint64_t rows = spec.is_vector ? 1 : part.rows;
  const uint64_t cols = spec.is_vector ? part.rows : spec.cols;
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
  }
  for (const ModelTensor& tensor : file.tensors())
    if (!wanted.contains(tensor.name))
      return bad(file, fmt::format("tensor {} is unknown to this architecture", tensor.name));
  return {};
}

uint64_t SegmentPlan::device_bytes() const {
  return device_layout(format, rows * cols / format_info(format).block_weights).total_bytes;
}

std::vector<SegmentPlan> plan_segments(const WeightSpec& spec, const ModelFile& file) {
  std::vector<SegmentPlan> segments;
  for (const WeightPart& part : spec.parts) {
    const ModelTensor* tensor = file.find(part.tensor);
    if (tensor == nullptr) return {};
    const WeightFormat format = spec.is_vector ? WeightFormat::kF32 : tensor->format;
    if (segments.empty() || (!spec.is_vector && segments.back().format != format))
      segments.push_back({.format = format, .cols = spec.is_vector ? 0 : spec.cols});
    SegmentPlan& segment = segments.back();
    segment.tensors.push_back(tensor);
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
