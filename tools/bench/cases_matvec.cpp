#include <fmt/format.h>

#include "engine/ops/matmul.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {
namespace {

struct Size {
  uint32_t outputs, inputs;
};

// Products with 1 to 8 rows, rotating over matrices that together are far larger than any cache, as
// the layers of a model are.
Result<KernelCaseSet> matvec_cases(KernelBench& bench) {
  KernelCaseSet set;
  const DeviceCaps& caps = bench.device().caps();
  const bool cpu = is_cpu(caps);
  const uint64_t rotation_bytes = cpu ? 64ull << 20 : 1ull << 30;
  const std::vector<Size> sizes =
      cpu ? std::vector<Size>{{32000, 288}, {4096, 4096}}
          : std::vector<Size>{{4096, 14336}, {14336, 4096}, {4096, 4096}, {1024, 4096}};
  HEARTH_ASSIGN(const Buffer* weight, add_filled(bench, set, rotation_bytes + (1ull << 28)));
  HEARTH_ASSIGN(const Buffer* x, add_filled(bench, set, 8 * 32000 * 4));
  HEARTH_ASSIGN(const Buffer* y, add_filled(bench, set, 8 * 32000 * 4));
  HEARTH_ASSIGN(const Buffer* scratch, add_filled(bench, set, 1 << 20));
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ8_0, WeightFormat::kQ4_0,
                                    WeightFormat::kQ4K, WeightFormat::kQ6K}) {
    for (const Size& size : sizes) {
      if (size.inputs % format_info(format).block_weights != 0) continue;
      const uint64_t blocks =
          uint64_t{size.outputs} * size.inputs / format_info(format).block_weights;
      const uint64_t matrix_bytes = device_layout(format, blocks).total_bytes;
      const uint64_t matrices = rotation_bytes / matrix_bytes + 1;
      for (const uint32_t rows : {1u, 2u, 4u, 8u}) {
        const MatmulShape shape{
            .format = format, .rows = rows, .inputs = size.inputs, .outputs = size.outputs};
        const MatmulPlan plan = choose_matmul(caps, shape);
        set.cases.push_back(
            {.kernel = "matvec",
             .variant = variant_name(plan.multiply.pipeline),
             .shape = fmt::format("{} {} x {} x {}", format_info(format).name, rows, size.outputs,
                                  size.inputs),
             .bytes = static_cast<double>(matrix_bytes) + 4.0 * rows * (size.inputs + size.outputs),
             .flops = 2.0 * rows * size.outputs * size.inputs,
             .record = [=, &bench](CommandRecorder& recorder, uint32_t repetition) {
               const uint64_t start = repetition % matrices * ((matrix_bytes + 255) / 256 * 256);
               return record_matmul(recorder, bench.pipelines(), plan,
                                    {.weight = weight->slice(start, matrix_bytes),
                                     .x = x->slice(0, uint64_t{rows} * size.inputs * 4),
                                     .y = y->slice(0, uint64_t{rows} * size.outputs * 4),
                                     .scratch = scratch->all(),
                                     .shape = shape});
             }});
      }
    }
  }
  return set;
}

const KernelCases matvec_family{"matvec", matvec_cases};

}  // namespace
}  // namespace hearth
