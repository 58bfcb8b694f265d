// Which kernel runs a piece of work, with which tile and on how many groups: a pure function of
// what the device can do and of the shape. One choose_<family>.cpp a kernel family; tables in
// tests/engine/ops pin it down for devices we do not have.
#pragma once

#include <cstdint>

#include "engine/ops/kernel_plan.h"

namespace hearth {

struct RmsNormShape {
  uint32_t rows = 0, width = 0;
};

KernelPlan choose_rms_norm(const DeviceCaps& caps, const RmsNormShape& shape);

struct MatvecShape {
  uint32_t rows = 0;    // of x, 1 to kMaxMatvecRows
  uint32_t inputs = 0;  // a multiple of 8
  uint32_t outputs = 0;
};
inline constexpr uint32_t kMaxMatvecRows = 8;

KernelPlan choose_matvec(const DeviceCaps& caps, const MatvecShape& shape);

}  // namespace hearth
