// The hidden rows that enter and leave the layers of a device that does not hold all of a model's
// (engine/ranks). Both are in host memory, one place per copy of a step's inputs; recorded copies
// bring them to the device and back. For one thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/model/model_config.h"
#include "engine/model/step_inputs.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/result.h"

namespace hearth {

class Device;

class StepBoundary {
 public:
  // For steps of up to `rows` rows, padding of the bucket included. Without a boundary at an end of
  // the layers there is no memory for it.
  static Result<StepBoundary> create(Device& device, const ModelConfig& config, uint32_t rows);

  // The commands before and after the layers: `hidden` has at least `rows` rows. Nothing where the
  // model itself begins or ends.
  void record_entering(CommandRecorder& recorder, size_t copy, const Buffer& hidden,
                       uint32_t rows) const;
  void record_leaving(CommandRecorder& recorder, size_t copy, const Buffer& hidden,
                      uint32_t rows) const;

  // A step's rows, [rows, width]. REQUIRES: the device no longer reads that copy.
  Status write(size_t copy, std::span<const float> rows);
  // The rows of a step that has run; empty where the model itself ends.
  Result<std::span<const float>> read(size_t copy, uint32_t rows) const;
  // How many floats a step of `rows` rows must bring.
  size_t entering_floats(uint32_t rows) const {
    return entering_.front() ? size_t{rows} * width_ : 0;
  }

 private:
  uint32_t width_ = 0;
  std::array<Buffer, StepInputs::kCopies> entering_, leaving_;
};

}  // namespace hearth
