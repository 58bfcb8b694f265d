#include "engine/model/model_weights.h"

#include <algorithm>
#include <cstring>

#include "engine/model/worker_pool.h"
#include "engine/weights/half.h"
#include "engine/weights/repack.h"
#include "runtime/device.h"
#include "runtime/memory.h"
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

  Status load(const Buffer& to, const WeightSpec& spec, const SegmentPlan& plan) {
    if (!spec.is_vector) return load_matrix(to, plan);
    return load_vector(to, plan, is_norm(spec.role) ? options_.norm_offset : 0);
  }

 private:
  Status load_vector(const Buffer& to, const SegmentPlan& plan, float offset) {
    std::vector<float> values;
    values.reserve(plan.cols);
    for (const ModelTensor* tensor : plan.tensors)
      for (size_t i = 0; i < tensor->cols; ++i)
        values.push_back(float_element(*tensor, i) + offset);
    const std::span<const std::byte> bytes = std::as_bytes(std::span<const float>(values));
    HEARTH_TRY(transfer_.upload(to.slice(0, bytes.size()), bytes));
    return note(bytes.size());
  }

  Status load_matrix(const Buffer& to, const SegmentPlan& plan) {
    const FormatInfo& format = format_info(plan.format);
    const DeviceLayout layout =
        device_layout(plan.format, plan.rows * plan.cols / format.block_weights);
    uint64_t first_block = 0;
    for (const ModelTensor* tensor : plan.tensors) {
      HEARTH_TRY(format.is_float() ? copy_tensor(to, *tensor, first_block * format.block_bytes)
                                   : repack_tensor(to, *tensor, layout, first_block));
      first_block += tensor->bytes.size() / format.block_bytes;
    }
    return {};
  }

  // Float formats are the same in the file and on the device.
  Status copy_tensor(const Buffer& to, const ModelTensor& tensor, uint64_t offset) {
    return transfer_.upload(to.slice(offset, tensor.bytes.size()),
                            [&](uint64_t from, std::span<std::byte> chunk) -> Status {
                              const size_t pieces = pool_.threads();
                              const size_t piece = (chunk.size() + pieces - 1) / pieces;
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
      uint64_t offset = 0;
      for (size_t p = 0; p < format.plane_bytes.size(); ++p) {
        const uint64_t bytes = count * format.plane_bytes[p];
        const uint64_t place = layout.offset[p] + (first_block + begin) * format.plane_bytes[p];
        HEARTH_TRY(
            transfer_.upload(to.slice(place, bytes), std::span(scratch_).subspan(offset, bytes)));
        offset += bytes;
      }
      HEARTH_TRY(note(count * format.block_bytes));
    }
    return {};
  }

  // Fills scratch_ with the planes of a range of blocks, plane after plane.
  void repack_range(const ModelTensor& tensor, uint64_t first, uint64_t count) {
    const FormatInfo& format = format_info(tensor.format);
    scratch_.resize(std::max<size_t>(scratch_.size(), count * format.block_bytes));
    const uint64_t pieces = pool_.threads();
    const uint64_t piece = (count + pieces - 1) / pieces;
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
  std::vector<std::byte> scratch_;
  uint64_t done_bytes_ = 0, total_bytes_;
};

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
      HEARTH_ASSIGN(segment.buffer, device.memory().allocate({.bytes = plan.device_bytes(),
                                                              .intent = MemoryIntent::kWeights,
                                                              .name = plan.tensors.front()->name}));
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
    for (size_t i = 0; i < plans.size(); ++i)
      HEARTH_TRY(loader.load(weight[i].buffer, spec, plans[i]));
  }
  return transfer->finish();
}

}  // namespace hearth
