// Times kernels on the GPU's own clock, beside what the device can do at most, in one run.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "runtime/command_recorder.h"
#include "runtime/device.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct Ceilings {
  double read_bytes_per_s = 0;
  double flops_per_s = 0;         // f32 multiply-adds outside matrix units
  double matrix_flops_per_s = 0;  // f16 products with f32 sums on matrix units; 0 without those
};

// One kernel at one shape. `record(recorder, i)` records the i-th repetition, which should not find
// its data in a cache that the (i-1)-th filled.
struct KernelCase {
  std::string kernel, variant, shape;
  double bytes = 0;           // that one run must move
  double flops = 0;           // that one run must do
  bool matrix_units = false;  // the ceiling of its arithmetic is that of the matrix units
  std::function<Status(CommandRecorder& recorder, uint32_t repetition)> record;
};

struct KernelTime {
  std::string kernel, variant, shape;
  double seconds = 0;  // the median over `samples` of the time of one run
  double bytes_per_s = 0, flops_per_s = 0;
  double share = 0;  // of the ceiling that binds: the larger of the two shares
};

class KernelBench {
 public:
  KernelBench(Device& device, PipelineStore& pipelines) : device_(device), pipelines_(pipelines) {}

  Result<Ceilings> measure_ceilings();
  Result<KernelTime> measure(const KernelCase& item, const Ceilings& ceilings);

  Device& device() const { return device_; }
  PipelineStore& pipelines() const { return pipelines_; }

 private:
  // Median seconds of one repetition, repetitions in a row as a step runs them.
  Result<double> time(const std::function<Status(CommandRecorder&, uint32_t)>& record);
  // Whether the clocks of a GPU may have gone down, by several times, since it ran something: it
  // rests while pipelines are compiled.
  bool has_rested() const;
  // Runs the commands for a while.
  Status warm_up(const CommandBuffer& commands);

  Device& device_;
  PipelineStore& pipelines_;
  std::chrono::steady_clock::time_point last_run_ = {};
};

}  // namespace hearth
