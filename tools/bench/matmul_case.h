// One product of `hearth bench --kernels`, as choose_matmul runs it.
#pragma once

#include <string>

#include "engine/ops/kernel_choice.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {

// Buffers that all products of a set share. They rotate over matrices that together are larger than
// any cache, as the layers of a model are.
struct MatmulBuffers {
  const Buffer *weight = nullptr, *x = nullptr, *y = nullptr, *scratch = nullptr;
  const Buffer* counts = nullptr;  // zero
  uint64_t rotation_bytes = 0;

  // For products of up to so many rows, inputs and outputs.
  static Result<MatmulBuffers> make(KernelBench& bench, KernelCaseSet& set, uint32_t rows,
                                    uint32_t inputs, uint32_t outputs);
};

// x comes in the form the kernel wants, as RMS norm and MLP activation write it; what that costs
// where it is a kernel of its own is measured under "prepare_rows".
KernelCase matmul_case(KernelBench& bench, std::string kernel, const MatmulShape& shape,
                       const MatmulBuffers& buffers);

}  // namespace hearth
