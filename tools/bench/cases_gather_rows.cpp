#include <fmt/format.h>

#include "engine/ops/gather_rows.h"
#include "tools/bench/add_list.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {
namespace {

Result<KernelCaseSet> gather_rows_cases(KernelBench& bench) {
  KernelCaseSet set;
  for (const uint32_t rows : {1u, 64u}) {
    const GatherRowsShape shape{.rows = rows, .width = 4096, .source_rows = 2048};
    std::vector<uint32_t> picked;
    for (uint32_t i = 0; i < rows; ++i) picked.push_back(i * 31);
    const uint64_t row_bytes = uint64_t{shape.width} * 4;
    HEARTH_ASSIGN(const Buffer* x, add_filled(bench, set, shape.source_rows * row_bytes));
    HEARTH_ASSIGN(const Buffer* y, add_filled(bench, set, rows * row_bytes));
    HEARTH_ASSIGN(const Buffer* indices, add_list(bench, set, picked));
    const KernelPlan plan = choose_gather_rows(bench.device().caps(), shape);
    set.cases.push_back(
        {.kernel = "gather_rows",
         .variant = variant_name(plan.pipeline),
         .shape = fmt::format("{} of 2048 x {}", rows, shape.width),
         .cost = gather_rows_cost(shape),
         .record = [=, &bench](CommandRecorder& recorder, uint32_t) {
           return record_gather_rows(
               recorder, bench.pipelines(), plan,
               {.x = x->all(), .indices = indices->all(), .y = y->all(), .shape = shape});
         }});
  }
  return set;
}

const KernelCases gather_rows_family{"gather_rows", gather_rows_cases};

}  // namespace
}  // namespace hearth
