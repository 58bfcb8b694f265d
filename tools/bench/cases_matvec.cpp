#include <fmt/format.h>

#include "engine/ops/matvec.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {
namespace {

// Rotates over matrices that together are far larger than any cache, as the layers of a model are.
Result<KernelCaseSet> matvec_cases(KernelBench& bench) {
  KernelCaseSet set;
  const DeviceCaps& caps = bench.device().caps();
  const bool cpu = caps.type == DeviceType::kCpu;
  const uint64_t rotation_bytes = cpu ? 64ull << 20 : 1ull << 30;
  for (const auto& [outputs, inputs] :
       {std::pair{4096u, 14336u}, {14336u, 4096u}, {4096u, 4096u}, {32000u, 288u}}) {
    const uint64_t matrix_bytes = uint64_t{outputs} * inputs * 2;
    const uint64_t matrices = rotation_bytes / matrix_bytes + 1;
    HEARTH_ASSIGN(const Buffer* weight, add_filled(bench, set, matrix_bytes * matrices));
    for (const uint32_t rows : {1u, 2u, 4u, 8u}) {
      const MatvecShape shape{.rows = rows, .inputs = inputs, .outputs = outputs};
      HEARTH_ASSIGN(const Buffer* x, add_filled(bench, set, uint64_t{rows} * inputs * 4));
      HEARTH_ASSIGN(const Buffer* y, add_filled(bench, set, uint64_t{rows} * outputs * 4));
      const KernelPlan plan = choose_matvec(caps, shape);
      set.cases.push_back({.kernel = "matvec_f16",
                           .variant = variant_name(plan.pipeline),
                           .shape = fmt::format("{} x {} x {}", rows, outputs, inputs),
                           .bytes = static_cast<double>(matrix_bytes + x->bytes() + y->bytes()),
                           .flops = 2.0 * rows * outputs * inputs,
                           .record = [=, &bench](CommandRecorder& recorder, uint32_t repetition) {
                             const uint64_t which = repetition % matrices;
                             return record_matvec(
                                 recorder, bench.pipelines(), plan,
                                 {.weight = weight->slice(which * matrix_bytes, matrix_bytes),
                                  .x = x->all(),
                                  .y = y->all(),
                                  .shape = shape});
                           }});
    }
  }
  return set;
}

const KernelCases matvec_family{"matvec", matvec_cases};

}  // namespace
}  // namespace hearth
