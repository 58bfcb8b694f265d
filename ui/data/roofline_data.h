// The roofline's measurements, as plain data: the device's ceilings and the parts of a step. Filled
// in by the benchmark.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

struct RooflineDot {
  std::string part;     // part of a step: "gate and up"
  std::string kernels;  // names of its kernels
  std::string step;     // "decode, 1 sequence"
  uint32_t calls = 0;
  double seconds = 0, bytes = 0, flops = 0;
  double share = 0;  // fraction of the lower of its two ceilings

  double bytes_per_s() const { return seconds > 0 ? bytes / seconds : 0; }
  double flops_per_s() const { return seconds > 0 ? flops / seconds : 0; }
  double intensity() const { return bytes > 0 ? flops / bytes : 0; }  // FLOP per byte
  bool operator==(const RooflineDot&) const = default;
};

struct RooflineData {
  double read_bytes_per_s = 0, flops_per_s = 0, matrix_flops_per_s = 0;  // measured ceilings
  std::vector<RooflineDot> dots;
  std::string failure;  // why there are no measurements

  bool empty() const { return dots.empty(); }
  bool operator==(const RooflineData&) const = default;
};

}  // namespace hearth
