#include "engine/model/step_boundary.h"

#include <cstring>

#include "runtime/device.h"
#include "runtime/memory.h"

namespace hearth {

namespace {

// The shared memory if there is some and the device can import it, else memory of its own.
Result<Buffer> boundary_buffer(Device& device, const SharedRows* shared, size_t copy,
                               const BufferInfo& info) {
  if (shared != nullptr && shared->place(copy).size() >= info.bytes &&
      device.caps().limits.host_import_alignment > 0 &&
      SharedRows::kAlignment % device.caps().limits.host_import_alignment == 0) {
    Result<Buffer> imported = device.memory().import_host(shared->place(copy), info.name);
    if (imported.ok() || imported.error().kind == ErrorKind::kDeviceLost) return imported;
  }
  return device.memory().allocate(info);
}

}  // namespace

Result<StepBoundary> StepBoundary::create(Device& device, const ModelConfig& config, uint32_t rows,
                                          const RankRows& shared) {
  static_assert(StepInputs::kCopies == SharedRows::kPlaces);
  StepBoundary boundary;
  boundary.width_ = config.width;
  const uint64_t bytes = StepBoundary::bytes(config, rows);
  for (size_t copy = 0; copy < StepInputs::kCopies; ++copy) {
    if (!config.has_input()) {
      HEARTH_ASSIGN(boundary.entering_[copy], boundary_buffer(device, shared.entering, copy,
                                                              {.bytes = bytes,
                                                               .intent = MemoryIntent::kUpload,
                                                               .name = "entering rows"}));
      // Rows of padding are copied, too, and must be numbers.
      if (!boundary.entering_[copy].is_imported())
        std::memset(boundary.entering_[copy].mapped(), 0, bytes);
    }
    if (!config.has_output()) {
      HEARTH_ASSIGN(boundary.leaving_[copy], boundary_buffer(device, shared.leaving, copy,
                                                             {.bytes = bytes,
                                                              .intent = MemoryIntent::kReadback,
                                                              .name = "leaving rows"}));
    }
  }
  return boundary;
}

void StepBoundary::record_entering(CommandRecorder& recorder, size_t copy, const Buffer& hidden,
                                   uint32_t rows) const {
  if (!entering_[copy]) return;
  const uint64_t bytes = uint64_t{rows} * width_ * sizeof(float);
  recorder.copy(entering_[copy].slice(0, bytes), hidden.slice(0, bytes));
}

void StepBoundary::record_leaving(CommandRecorder& recorder, size_t copy, const Buffer& hidden,
                                  uint32_t rows) const {
  if (!leaving_[copy]) return;
  const uint64_t bytes = uint64_t{rows} * width_ * sizeof(float);
  recorder.copy(hidden.slice(0, bytes), leaving_[copy].slice(0, bytes));
}

Status StepBoundary::write(size_t copy, std::span<const float> rows) {
  if (rows.empty()) return {};
  if (static_cast<const void*>(rows.data()) == entering_[copy].mapped()) return {};
  std::memcpy(entering_[copy].mapped(), rows.data(), rows.size_bytes());
  return entering_[copy].flush();
}

Result<std::span<const float>> StepBoundary::read(size_t copy, uint32_t rows) const {
  if (!leaving_[copy]) return std::span<const float>();
  HEARTH_TRY(leaving_[copy].invalidate());
  return leaving_[copy].view<const float>().first(size_t{rows} * width_);
}

}  // namespace hearth
