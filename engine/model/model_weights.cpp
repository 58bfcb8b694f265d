#include "engine/model/model_weights.h"

#include <algorithm>
#include <cstring>

#include "engine/model/worker_pool.h"
#include "engine/weights/half.h"
#include "engine/weights/repack.h"
#include "engine/weights/stored_tensor.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/rounding.h"
#include "runtime/transfer.h"

namespace hearth {
namespace {

bool is_norm(WeightRole role) {
  switch (role) {
    case WeightRole::kOutputNorm:
    case WeightRole::kAttentionNorm:
    case WeightRole::kQNorm:
    case WeightRole::kKNorm:
    case WeightRole::kAttentionPostNorm:
    case WeightRole::kMlpNorm:
    case WeightRole::kMlpPostNorm:
      return true;
    default:
      return false;
  }
}

template <class T>
T load_element(std::span<const std::byte> bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

// REQUIRES: a float format.
float float_element(const ModelTensor& tensor, size_t i) {
  switch (tensor.format) {
    case WeightFormat::kF16:
      return half_to_float(load_element<uint16_t>(tensor.bytes, i));
    case WeightFormat::kBf16:
      return bfloat16_to_float(load_element<uint16_t>(tensor.bytes, i));
    default:
      return load_element<float>(tensor.bytes, i);
  }
}

class Loader {
 public:
  Loader(Transfer& transfer, const ModelFile& file, const LoadOptions& options,
         uint64_t total_bytes)
      : transfer_(transfer), file_(file), options_(options), total_bytes_(total_bytes) {}

  Status load(const WeightSegment& to, const WeightSpec& spec, const SegmentPlan& plan) {
    if (plan.is_expert_bias) return load_expert_biases(to.buffer, plan);
    if (plan.experts > 0) return load_experts(to, plan);
    if (!spec.is_vector) return load_matrix(to.buffer, plan);
    return load_vector(to.buffer, plan, is_norm(spec.role) ? options_.norm_offset : 0);
  }

 private:
  // [experts, projections, cols]
  Status load_expert_biases(const Buffer& to, const SegmentPlan& plan) {
    std::vector<float> values;
    values.reserve(plan.rows * plan.cols);
    for (uint32_t expert = 0; expert < plan.experts; ++expert)
      for (const TensorRows& part : plan.tensors)
        append_floats(*part.tensor, expert, 1, plan, values);
    const std::span<const std::byte> bytes = std::as_bytes(std::span<const float>(values));
    HEARTH_TRY(transfer_.upload(to.slice(0, bytes.size()), bytes));
    return note(bytes.size());
  }

  // The plan's columns of rows of a tensor of floats.
  void append_floats(const ModelTensor& tensor, uint64_t first, uint64_t rows,
                     const SegmentPlan& plan, std::vector<float>& values) {
    const uint64_t row_bytes = tensor.plain_bytes() / tensor.rows;
    plain_.resize(rows * row_bytes);
    read_tensor_rows(tensor, first, rows, plain_);
    ModelTensor plain = tensor;
    plain.bytes = plain_;
    for (uint64_t row = 0; row < rows; ++row)
      for (uint64_t i = 0; i < plan.cols; ++i)
        values.push_back(float_element(plain, row * tensor.cols + plan.first_col + i));
  }

  Status load_experts(const WeightSegment& to, const SegmentPlan& plan) {
    const uint64_t rows = plan.expert_rows() / plan.projections;  // per projection
    const bool one_each = plan.tensors.size() > plan.projections;
    const uint64_t block_weights = format_info(plan.format).block_weights;
    const DeviceLayout layout =
        device_layout(plan.format, plan.expert_rows() * plan.cols / block_weights);
    for (uint32_t expert = 0; expert < plan.experts; ++expert) {
      const uint32_t index = expert / to.buffer_experts;
      const Buffer& buffer = index == 0 ? to.buffer : to.more[index - 1];
      const BufferSlice place =
          buffer.slice(expert % to.buffer_experts * plan.expert_stride(), layout.total_bytes);
      for (uint32_t p = 0; p < plan.projections; ++p) {
        const TensorRows& part =
            plan.tensors[one_each ? size_t{p} * plan.experts + expert : size_t{p}];
        const uint64_t begin = one_each ? 0 : expert * (part.tensor->rows / plan.experts);
        HEARTH_TRY(load_rows(place, plan, {part.tensor, begin + part.first, rows}, layout,
                             p * rows * plan.cols / block_weights));
      }
    }
    return {};
  }

  // The plan's columns of rows of a tensor, into a matrix with that layout from block `to_block`
  // on.
  Status load_rows(const BufferSlice& to, const SegmentPlan& plan, const TensorRows& part,
                   const DeviceLayout& layout, uint64_t to_block) {
    constexpr uint64_t kBatchBytes = 8ull << 20;
    const ModelTensor& tensor = *part.tensor;
    const FormatInfo& format = format_info(tensor.format);
    const uint64_t row_blocks = plan.cols / format.block_weights;
    const uint64_t batch = std::max<uint64_t>(1, kBatchBytes * tensor.rows / tensor.plain_bytes());
    for (uint64_t begin = 0; begin < part.rows; begin += batch) {
      const uint64_t count = std::min(batch, part.rows - begin);
      read_plain(tensor, part.first + begin, count);
      keep_plain_columns(tensor, plan, count);
      const uint64_t block = to_block + begin * row_blocks;
      if (format.is_float()) {
        HEARTH_TRY(transfer_.upload(to.slice(block * format.block_bytes, plain_.size()), plain_));
      } else {
        ModelTensor plain = tensor;
        plain.bytes = plain_;
        const uint64_t blocks = plain_.size() / format.block_bytes;
        repack_range(plain, 0, blocks);
        HEARTH_TRY(upload_planes(to, format, layout, block, blocks));
      }
      HEARTH_TRY(note(plain_.size()));
    }
    return {};
  }

  // Rows of a tensor, into plain_.
  void read_plain(const ModelTensor& tensor, uint64_t first, uint64_t count) {
    const uint64_t row_bytes = tensor.plain_bytes() / tensor.rows;
    plain_.resize(count * row_bytes);
    const uint64_t pieces = pool_.threads(), piece = divide_up(count, pieces);
    pool_.run(pieces, [&](size_t i) {
      const uint64_t from = std::min(i * piece, count), own = std::min(piece, count - from);
      read_tensor_rows(tensor, first + from, own,
                       std::span(plain_).subspan(from * row_bytes, own * row_bytes));
    });
  }

  // Leaves the plan's columns of the rows in plain_.
  void keep_plain_columns(const ModelTensor& tensor, const SegmentPlan& plan, uint64_t rows) {
    if (plan.cols == tensor.cols) return;
    const FormatInfo& format = format_info(tensor.format);
    const uint64_t row_bytes = tensor.plain_bytes() / tensor.rows;
    const uint64_t first = plan.first_col / format.block_weights * format.block_bytes;
    const uint64_t bytes = plan.cols / format.block_weights * format.block_bytes;
    for (uint64_t row = 0; row < rows; ++row)
      std::memmove(plain_.data() + row * bytes, plain_.data() + row * row_bytes + first, bytes);
    plain_.resize(rows * bytes);
  }

  // The planes of a range of blocks, from scratch_ to their places.
  Status upload_planes(const BufferSlice& to, const FormatInfo& format, const DeviceLayout& layout,
                       uint64_t first_block, uint64_t count) {
    uint64_t offset = 0;
    for (size_t p = 0; p < format.plane_bytes.size(); ++p) {
      const uint64_t bytes = count * format.plane_bytes[p];
      const uint64_t place = layout.offset[p] + first_block * format.plane_bytes[p];
      HEARTH_TRY(
          transfer_.upload(to.slice(place, bytes), std::span(scratch_).subspan(offset, bytes)));
      offset += bytes;
    }
    return {};
  }

  Status load_vector(const Buffer& to, const SegmentPlan& plan, float offset) {
    std::vector<float> values;
    values.reserve(plan.cols);
    for (const auto& [tensor, first, count] : plan.tensors)
      for (size_t i = 0; i < count; ++i)
        values.push_back(float_element(*tensor, first + i) + offset);
    const std::span<const std::byte> bytes = std::as_bytes(std::span<const float>(values));
    HEARTH_TRY(transfer_.upload(to.slice(0, bytes.size()), bytes));
    return note(bytes.size());
  }

  Status load_matrix(const Buffer& to, const SegmentPlan& plan) {
    const FormatInfo& format = format_info(plan.format);
    const DeviceLayout layout =
        device_layout(plan.format, plan.rows * plan.cols / format.block_weights);
    uint64_t first_block = 0;
    for (const TensorRows& part : plan.tensors) {
      const ModelTensor& tensor = *part.tensor;
      const bool whole = part.rows == tensor.rows && plan.cols == tensor.cols;
      if (tensor.format != plan.format) return load_as_f32(to, plan, tensor);
      if (!whole)
        HEARTH_TRY(load_rows(to.all(), plan, part, layout, first_block));
      else if (format.is_float())
        HEARTH_TRY(copy_tensor(to, tensor, first_block * format.block_bytes));
      else
        HEARTH_TRY(repack_tensor(to, tensor, layout, first_block));
      first_block += part.rows * plan.cols / format.block_weights;
    }
    return {};
  }

  // A matrix of floats that is F32 on the device, such as a router, which is small.
  Status load_as_f32(const Buffer& to, const SegmentPlan& plan, const ModelTensor& tensor) {
    std::vector<float> values;
    append_floats(tensor, 0, tensor.rows, plan, values);
    const std::span<const std::byte> bytes = std::as_bytes(std::span<const float>(values));
    HEARTH_TRY(transfer_.upload(to.slice(0, bytes.size()), bytes));
    return note(bytes.size());
  }

  // Float formats are the same in the file and on the device.
  Status copy_tensor(const Buffer& to, const ModelTensor& tensor, uint64_t offset) {
    return transfer_.upload(to.slice(offset, tensor.bytes.size()),
                            [&](uint64_t from, std::span<std::byte> chunk) -> Status {
                              const size_t pieces = pool_.threads();
                              const size_t piece = divide_up(chunk.size(), pieces);
                              pool_.run(pieces, [&](size_t i) {
                                const size_t begin = std::min(i * piece, chunk.size());
                                const size_t bytes = std::min(piece, chunk.size() - begin);
                                std::memcpy(chunk.data() + begin,
                                            tensor.bytes.data() + from + begin, bytes);
                              });
                              return note(chunk.size());
                            });
  }

  // Repacks a range of blocks into planes on the host, then uploads each plane to its place.
  Status repack_tensor(const Buffer& to, const ModelTensor& tensor, const DeviceLayout& layout,
                       uint64_t first_block) {
    constexpr uint64_t kBatchBytes = 8ull << 20;
    const FormatInfo& format = format_info(tensor.format);
    const uint64_t blocks = tensor.bytes.size() / format.block_bytes;
    const uint64_t batch = std::max<uint64_t>(1, kBatchBytes / format.block_bytes);
    for (uint64_t begin = 0; begin < blocks; begin += batch) {
      const uint64_t count = std::min(batch, blocks - begin);
      repack_range(tensor, begin, count);
      HEARTH_TRY(upload_planes(to.all(), format, layout, first_block + begin, count));
      HEARTH_TRY(note(count * format.block_bytes));
    }
    return {};
  }

  // Fills scratch_ with the planes of a range of blocks, plane after plane.
  void repack_range(const ModelTensor& tensor, uint64_t first, uint64_t count) {
    const FormatInfo& format = format_info(tensor.format);
    scratch_.resize(std::max<size_t>(scratch_.size(), count * format.block_bytes));
    const uint64_t pieces = pool_.threads();
    const uint64_t piece = divide_up(count, pieces);
    pool_.run(pieces, [&](size_t i) {
      const uint64_t begin = std::min(i * piece, count);
      const uint64_t blocks = std::min(piece, count - begin);
      std::byte* planes[kMaxPlanes];
      uint64_t offset = 0;
      for (size_t p = 0; p < format.plane_bytes.size(); ++p) {
        planes[p] = scratch_.data() + offset + begin * format.plane_bytes[p];
        offset += count * format.plane_bytes[p];
      }
      repack_blocks(
          tensor.format,
          tensor.bytes.subspan((first + begin) * format.block_bytes, blocks * format.block_bytes),
          std::span(planes).first(format.plane_bytes.size()));
    });
  }

  // Called after some bytes were read: fails if they were not all there.
  Status note(uint64_t bytes) {
    HEARTH_TRY(file_.check_files());
    done_bytes_ += bytes;
    if (options_.progress) options_.progress(std::min(done_bytes_, total_bytes_), total_bytes_);
    return {};
  }

  Transfer& transfer_;
  const ModelFile& file_;
  const LoadOptions& options_;
  WorkerPool pool_;
  std::vector<std::byte> scratch_, plain_;
  uint64_t done_bytes_ = 0, total_bytes_;
};

// Matrices of experts go into as few buffers as the device allows.
Status allocate_experts(Device& device, const SegmentPlan& plan, WeightSegment& segment) {
  const uint64_t stride = plan.expert_stride();
  const uint64_t most = device.caps().limits.max_allocation_bytes / stride;
  segment.rows = static_cast<uint32_t>(plan.expert_rows());
  segment.experts = plan.experts;
  segment.expert_stride = stride;
  segment.buffer_experts = static_cast<uint32_t>(std::clamp<uint64_t>(most, 1, plan.experts));
  std::vector<uint64_t> addresses;
  for (uint32_t first = 0; first < plan.experts; first += segment.buffer_experts) {
    const uint32_t count = std::min(segment.buffer_experts, plan.experts - first);
    HEARTH_ASSIGN(Buffer buffer,
                  device.memory().allocate({.bytes = count * stride,
                                            .intent = MemoryIntent::kWeights,
                                            .name = plan.tensors.front().tensor->name}));
    for (uint32_t i = 0; i < count; ++i) addresses.push_back(buffer.address() + i * stride);
    if (first == 0)
      segment.buffer = std::move(buffer);
    else
      segment.more.push_back(std::move(buffer));
  }
  if (segment.more.empty()) return {};
  const std::span<const std::byte> bytes = std::as_bytes(std::span<const uint64_t>(addresses));
  HEARTH_ASSIGN(segment.table, device.memory().allocate({.bytes = bytes.size(),
                                                         .intent = MemoryIntent::kWeights,
                                                         .name = "addresses of experts"}));
  HEARTH_ASSIGN(const auto transfer,
                Transfer::create(device, {.ring_bytes = 1 << 20, .chunk_bytes = 1 << 20}));
  HEARTH_TRY(transfer->upload(segment.table.all(), bytes));
  return transfer->finish();
}

}  // namespace

Result<ModelWeights> ModelWeights::allocate(Device& device, const ModelFile& file,
                                            const WeightTable& table) {
  ModelWeights weights;
  uint32_t layers = 1;
  for (const WeightSpec& spec : table.specs()) layers = std::max(layers, spec.layer + 1);
  weights.weights_.resize(size_t{layers} * kWeightRoles);
  for (const WeightSpec& spec : table.specs()) {
    Weight& weight = weights.weights_[index(spec.role, spec.layer)];
    for (const SegmentPlan& plan : plan_segments(spec, file)) {
      WeightSegment segment{.format = plan.format,
                            .rows = static_cast<uint32_t>(plan.rows),
                            .cols = static_cast<uint32_t>(plan.cols)};
      if (plan.experts > 0 && !plan.is_expert_bias) {
        HEARTH_TRY(allocate_experts(device, plan, segment));
        weights.bytes_ += plan.device_bytes();
        weight.push_back(std::move(segment));
        continue;
      }
      HEARTH_ASSIGN(segment.buffer,
                    device.memory().allocate({.bytes = plan.device_bytes(),
                                              .intent = MemoryIntent::kWeights,
                                              .name = plan.tensors.front().tensor->name}));
      weights.bytes_ += plan.device_bytes();
      weight.push_back(std::move(segment));
    }
  }
  return weights;
}

Status ModelWeights::fill(Device& device, const ModelFile& file, const WeightTable& table,
                          const LoadOptions& options) const {
  HEARTH_ASSIGN(const auto transfer, Transfer::create(device));
  Loader loader(*transfer, file, options, bytes_);
  for (const WeightSpec& spec : table.specs()) {
    const std::vector<SegmentPlan> plans = plan_segments(spec, file);
    const Weight& weight = get(spec.role, spec.layer);
    for (size_t i = 0; i < plans.size(); ++i) HEARTH_TRY(loader.load(weight[i], spec, plans[i]));
  }
  return transfer->finish();
}

}  // namespace hearth
