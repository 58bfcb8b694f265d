// One matrix product of `hearth bench --kernels`, run by the kernel that choose_matmul picks.
#pragma once

#include <string>

#include "engine/ops/matmul.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {

// Buffers that all products of a set share. Repetitions rotate over matrices that together are
// larger than any cache, as the layers of a model are.
struct MatmulBuffers {
  const Buffer *weight = nullptr, *x = nullptr, *y = nullptr, *scratch = nullptr;
  const Buffer* counts = nullptr;  // all zero
  uint64_t rotation_bytes = 0;

  // For products of at most `rows` rows, `inputs` inputs and `outputs` outputs.
  static Result<MatmulBuffers> make(KernelBench& bench, KernelCaseSet& set, uint32_t rows,
                                    uint32_t inputs, uint32_t outputs);
};

// x already has the form that the kernel reads, because RMS norm and MLP activation write it so.
// Where a separate kernel converts it, that kernel is timed under "prepare_rows".
KernelCase matmul_case(KernelBench& bench, std::string kernel, const MatmulShape& shape,
                       const MatmulBuffers& buffers);

}  // namespace hearth
