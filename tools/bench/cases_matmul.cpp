#include <fmt/format.h>

#include "engine/ops/matmul.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {
namespace {

// Products with more rows than the matrix-vector kernels take: decode steps of many streams, and
// prompts. Rotates over matrices that together are larger than any cache.
Result<KernelCaseSet> matmul_cases(KernelBench& bench) {
  KernelCaseSet set;
  const DeviceCaps& caps = bench.device().caps();
  const bool cpu = is_cpu(caps);
  const uint32_t outputs = cpu ? 768 : 4096, inputs = cpu ? 768 : 14336;
  const uint64_t rotation_bytes = cpu ? 8ull << 20 : 1ull << 30;
  const uint32_t most_rows = cpu ? 64 : 2048;
  HEARTH_ASSIGN(const Buffer* weight, add_filled(bench, set, rotation_bytes + (1ull << 28)));
  HEARTH_ASSIGN(const Buffer* x, add_filled(bench, set, uint64_t{most_rows} * inputs * 4));
  HEARTH_ASSIGN(const Buffer* y, add_filled(bench, set, uint64_t{most_rows} * outputs * 4));
  HEARTH_ASSIGN(const Buffer* scratch, add_filled(bench, set, 64ull << 20));
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ8_0, WeightFormat::kQ4K}) {
    for (const uint32_t rows : {9u, 16u, 32u, 64u, 128u, 256u, 512u, 2048u}) {
      if (rows > most_rows) continue;
      const MatmulShape shape{.format = format, .rows = rows, .inputs = inputs, .outputs = outputs};
      const MatmulPlan plan = choose_matmul(caps, shape);
      const uint64_t matrix_bytes =
          device_layout(format, uint64_t{outputs} * inputs / format_info(format).block_weights)
              .total_bytes;
      const uint64_t matrices = rotation_bytes / matrix_bytes + 1;
      set.cases.push_back(
          {.kernel = "matmul",
           .variant = variant_name(plan.multiply.pipeline),
           .shape = fmt::format("{} {} x {} x {}", format_info(format).name, rows, outputs, inputs),
           .bytes = static_cast<double>(matrix_bytes) + 4.0 * rows * (inputs + outputs),
           .flops = 2.0 * rows * outputs * inputs,
           .matrix_units = coopmat_shape(caps).has_value() && !cpu,
           .record = [=, &bench](CommandRecorder& recorder, uint32_t repetition) {
             const uint64_t start = repetition % matrices * ((matrix_bytes + 255) / 256 * 256);
             return record_matmul(recorder, bench.pipelines(), plan,
                                  {.weight = weight->slice(start, matrix_bytes),
                                   .x = x->slice(0, uint64_t{rows} * inputs * 4),
                                   .y = y->slice(0, uint64_t{rows} * outputs * 4),
                                   .scratch = scratch->all(),
                                   .shape = shape});
           }});
    }
  }
  return set;
}

const KernelCases matmul_family{"matmul", matmul_cases};

}  // namespace
}  // namespace hearth
