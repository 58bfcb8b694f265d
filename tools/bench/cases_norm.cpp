#include <fmt/format.h>

#include "engine/ops/norm.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {
namespace {

Result<KernelCaseSet> rms_norm_cases(KernelBench& bench) {
  KernelCaseSet set;
  const DeviceCaps& caps = bench.device().caps();
  for (RmsNormShape shape : {RmsNormShape{1, 4096}, {64, 4096}, {2048, 4096}}) {
    const uint64_t bytes = uint64_t{shape.rows} * shape.width * 4;
    HEARTH_ASSIGN(const Buffer* x, add_filled(bench, set, bytes));
    HEARTH_ASSIGN(const Buffer* residual, add_filled(bench, set, bytes));
    HEARTH_ASSIGN(const Buffer* y, add_filled(bench, set, bytes));
    HEARTH_ASSIGN(const Buffer* weight, add_filled(bench, set, uint64_t{shape.width} * 4));
    for (const bool add : {false, true}) {
      shape.residuals = add ? 1 : 0;
      const KernelPlan plan = choose_rms_norm(caps, shape);
      set.cases.push_back({.kernel = add ? "rms_norm_add" : "rms_norm",
                           .variant = variant_name(plan.pipeline),
                           .shape = fmt::format("{} x {}", shape.rows, shape.width),
                           .cost = rms_norm_cost(shape),
                           .record = [=, &bench](CommandRecorder& recorder, uint32_t) {
                             return record_rms_norm(recorder, bench.pipelines(), plan,
                                                    {.x = x->all(),
                                                     .weight = weight->all(),
                                                     .y = y->all(),
                                                     .shape = shape,
                                                     .residual = residual->all()});
                           }});
    }
  }
  return set;
}

const KernelCases rms_norm_family{"rms_norm", rms_norm_cases};

}  // namespace
}  // namespace hearth
