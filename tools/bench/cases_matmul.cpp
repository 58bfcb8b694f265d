#include <fmt/format.h>

#include "engine/ops/matmul.h"
#include "tools/bench/matmul_case.h"

namespace hearth {
namespace {

constexpr WeightFormat kFormats[] = {WeightFormat::kF16, WeightFormat::kQ8_0, WeightFormat::kQ4K};

// Products with more rows than the matrix-vector kernels take: decode steps of large batches, and
// prompts.
Result<KernelCaseSet> matmul_cases(KernelBench& bench) {
  KernelCaseSet set;
  const bool cpu = is_cpu(bench.device().caps());
  const uint32_t outputs = cpu ? 768 : 4096, inputs = cpu ? 768 : 14336;
  const uint32_t most_rows = cpu ? 64 : 2048;
  HEARTH_ASSIGN(const MatmulBuffers buffers,
                MatmulBuffers::make(bench, set, most_rows, inputs, std::max(outputs, inputs)));
  for (const WeightFormat format : kFormats) {
    for (const uint32_t rows : {9u, 16u, 32u, 64u, 128u, 256u, 512u, 2048u}) {
      if (rows > most_rows) continue;
      set.cases.push_back(matmul_case(
          bench, "matmul", {.format = format, .rows = rows, .inputs = inputs, .outputs = outputs},
          buffers));
    }
    for (const uint32_t rows : {16u, 64u, 256u})
      if (!cpu)
        set.cases.push_back(matmul_case(
            bench, "matmul", {.format = format, .rows = rows, .inputs = outputs, .outputs = inputs},
            buffers));
  }
  return set;
}

// Time over the number of rows: more rows must not take less time, whichever kernels are chosen
// for them.
Result<KernelCaseSet> curve_cases(KernelBench& bench) {
  KernelCaseSet set;
  const bool cpu = is_cpu(bench.device().caps());
  const uint32_t outputs = cpu ? 768 : 4096, inputs = cpu ? 768 : 14336;
  const uint32_t most_rows = cpu ? 64 : 256;
  HEARTH_ASSIGN(const MatmulBuffers buffers,
                MatmulBuffers::make(bench, set, most_rows, inputs, outputs));
  for (const WeightFormat format : kFormats)
    for (const uint32_t rows : {1u,  2u,  3u,  4u,  6u,  8u,  9u,   12u,  16u,  17u, 24u,
                                32u, 33u, 48u, 64u, 65u, 96u, 128u, 129u, 192u, 256u})
      if (rows <= most_rows)
        set.cases.push_back(matmul_case(
            bench, "matmul_curve",
            {.format = format, .rows = rows, .inputs = inputs, .outputs = outputs}, buffers));
  return set;
}

// The kernel that converts x to the form a product reads, if no earlier kernel has written it so.
Result<KernelCaseSet> prepare_cases(KernelBench& bench) {
  KernelCaseSet set;
  DeviceCaps caps = bench.device().caps();
  if (is_cpu(caps)) return set;
  constexpr uint32_t kInputs = 14336;
  for (const uint32_t rows : {1u, 64u, 2048u}) {
    const MatmulShape shape{
        .format = WeightFormat::kQ4K, .rows = rows, .inputs = kInputs, .outputs = 4096};
    const MatmulPlan plan = choose_matmul(caps, shape);
    if (!plan.prepare) continue;
    const uint64_t bytes = uint64_t{rows} * kInputs * 4;
    HEARTH_ASSIGN(const Buffer* x, add_filled(bench, set, bytes));
    HEARTH_ASSIGN(const Buffer* prepared, add_filled(bench, set, plan.prepared_bytes));
    set.cases.push_back(
        {.kernel = "prepare_rows",
         .variant = variant_name(plan.prepare->pipeline),
         .shape = fmt::format("{} x {}", rows, kInputs),
         .cost = {.activation_bytes = static_cast<double>(bytes + plan.prepared_bytes)},
         .record = [=, &bench](CommandRecorder& recorder, uint32_t) {
           return record_prepare(recorder, bench.pipelines(), plan,
                                 {.weight = {}, .x = x->all(), .y = {}, .shape = shape},
                                 prepared->all());
         }});
  }
  return set;
}

const KernelCases matmul_family{"matmul", matmul_cases};
const KernelCases curve_family{"matmul_curve", curve_cases};
const KernelCases prepare_family{"prepare_rows", prepare_cases};

}  // namespace
}  // namespace hearth
