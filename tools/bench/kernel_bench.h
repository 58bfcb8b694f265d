// Times kernels on the GPU's own clock, and measures in the same run what the device can do at
// most.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ops/cost.h"
#include "runtime/command_recorder.h"
#include "runtime/device.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct Ceilings {
  double read_bytes_per_s = 0;
  double flops_per_s = 0;         // f32 multiply-adds outside matrix units
  double matrix_flops_per_s = 0;  // f16 products with f32 sums on matrix units; 0 if it has none
};

// How close to the device's ceilings some work came: the larger of its shares of memory bandwidth
// and arithmetic, and which of them that is: "read", "flops" or "matrix".
struct CeilingShare {
  double share = 0;
  std::string_view of = "read";
};

// Work that moves `bytes` and does `flops` in `seconds`. Pure; a share of 0 if a time or a ceiling
// is not known.
CeilingShare ceiling_share(double bytes, double flops, double seconds, const Ceilings& ceilings,
                           bool matrix_units);

// One kernel at one shape. `record(recorder, i)` records the i-th repetition, whose data should not
// be in a cache because of the one before.
struct KernelCase {
  std::string kernel, variant, shape;
  OpCost cost;                // of one run
  bool matrix_units = false;  // its arithmetic runs on matrix units, and is limited by them
  std::function<Status(CommandRecorder& recorder, uint32_t repetition)> record;
};

struct KernelTime {
  std::string kernel, variant, shape;
  double seconds = 0;  // of one run, the median over several samples
  double bytes_per_s = 0, flops_per_s = 0;
  CeilingShare ceiling;
};

class KernelBench {
 public:
  KernelBench(Device& device, PipelineStore& pipelines) : device_(device), pipelines_(pipelines) {}

  Result<Ceilings> measure_ceilings();
  Result<KernelTime> measure(const KernelCase& item, const Ceilings& ceilings);

  Device& device() const { return device_; }
  PipelineStore& pipelines() const { return pipelines_; }

 private:
  // Median seconds of one repetition. Repetitions run back to back, as the kernels of a step do.
  Result<double> time(const std::function<Status(CommandRecorder&, uint32_t)>& record);
  // Whether the GPU has been idle for so long that its clocks may have dropped to a fraction, as it
  // is while pipelines are compiled.
  bool was_idle() const;
  // Runs the commands until the clocks are up again.
  Status warm_up(const CommandBuffer& commands);

  Device& device_;
  PipelineStore& pipelines_;
  std::chrono::steady_clock::time_point last_run_ = {};
};

}  // namespace hearth
