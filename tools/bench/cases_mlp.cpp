#include <fmt/format.h>

#include "engine/ops/mlp.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {
namespace {

Result<KernelCaseSet> mlp_cases(KernelBench& bench) {
  KernelCaseSet set;
  for (const MlpActivation activation : {MlpActivation::kSilu, MlpActivation::kGeluTanh}) {
    for (const uint32_t rows : {1u, 64u, 2048u}) {
      const MlpShape shape{.rows = rows, .width = 14336, .activation = activation};
      const uint64_t bytes = uint64_t{rows} * shape.width * 4;
      HEARTH_ASSIGN(const Buffer* gate_up, add_filled(bench, set, 2 * bytes));
      HEARTH_ASSIGN(const Buffer* y, add_filled(bench, set, bytes));
      Mlp op{.gate = {}, .up = {}, .y = y->all(), .shape = shape};
      use_fused_gate_up(op, gate_up->all());
      const KernelPlan plan = choose_mlp(bench.device().caps(), shape);
      set.cases.push_back({.kernel = activation == MlpActivation::kSilu ? "mlp_silu" : "mlp_gelu",
                           .variant = variant_name(plan.pipeline),
                           .shape = fmt::format("{} x {}", rows, shape.width),
                           .cost = mlp_cost(shape),
                           .record = [=, &bench](CommandRecorder& recorder, uint32_t) {
                             return record_mlp(recorder, bench.pipelines(), plan, op);
                           }});
    }
  }
  return set;
}

const KernelCases mlp_family{"mlp", mlp_cases};

}  // namespace
}  // namespace hearth
