// On a device that holds only some of a model's layers (engine/ranks): the hidden rows that enter
// them and those that leave. Each copy of a step's inputs has host memory for both; commands in the
// recorded step copy them to the device and back. For one thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/model/model_config.h"
#include "engine/model/shared_rows.h"
#include "engine/model/step_inputs.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/result.h"

namespace hearth {

class Device;

class StepBoundary {
 public:
  // For steps of up to `rows` rows, padding of the bucket included. Without a boundary at an end of
  // the layers there is no memory for it. Memory that is shared with another device is used where
  // it is large enough and the device can import it; it outlives the boundary.
  static Result<StepBoundary> create(Device& device, const ModelConfig& config, uint32_t rows,
                                     const RankRows& shared = {});
  // What each place for `rows` rows needs.
  static uint64_t bytes(const ModelConfig& config, uint32_t rows) {
    return uint64_t{rows} * config.width * sizeof(float);
  }

  // The commands before and after the layers: `hidden` has at least `rows` rows. Nothing where the
  // model itself begins or ends.
  void record_entering(CommandRecorder& recorder, size_t copy, const Buffer& hidden,
                       uint32_t rows) const;
  void record_leaving(CommandRecorder& recorder, size_t copy, const Buffer& hidden,
                      uint32_t rows) const;

  // A step's rows, [rows, width]; nothing is copied if they are in that copy's shared memory.
  // REQUIRES: the device no longer reads that copy.
  Status write(size_t copy, std::span<const float> rows);
  // The rows that a finished step passes on to the next rank; empty on the last rank.
  Result<std::span<const float>> read(size_t copy, uint32_t rows) const;
  // How many floats the rank before must send for a step of `rows` rows.
  size_t entering_floats(uint32_t rows) const {
    return entering_.front() ? size_t{rows} * width_ : 0;
  }

 private:
  uint32_t width_ = 0;
  std::array<Buffer, StepInputs::kCopies> entering_, leaving_;
};

}  // namespace hearth
