// The kernels and shapes that `hearth bench --kernels` times. They own the buffers they run on, so
// one set is made, measured and dropped before the next.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/buffer.h"
#include "tools/bench/kernel_bench.h"

namespace hearth {

struct KernelCaseSet {
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<KernelCase> cases;
};

using MakeKernelCases = std::function<Result<KernelCaseSet>(KernelBench& bench)>;

// One entry a kernel family.
std::vector<MakeKernelCases> kernel_case_makers();

}  // namespace hearth
