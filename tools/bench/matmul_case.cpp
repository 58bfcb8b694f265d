#include "tools/bench/matmul_case.h"

#include <fmt/format.h>

#include "engine/ops/matmul.h"
#include "runtime/rounding.h"

namespace hearth {

Result<MatmulBuffers> MatmulBuffers::make(KernelBench& bench, KernelCaseSet& set, uint32_t rows,
                                          uint32_t inputs, uint32_t outputs) {
  const bool cpu = is_cpu(bench.device().caps());
  MatmulBuffers buffers{.rotation_bytes = cpu ? 64ull << 20 : 1ull << 30};
  HEARTH_ASSIGN(buffers.weight, add_filled(bench, set, buffers.rotation_bytes + (1ull << 28)));
  HEARTH_ASSIGN(buffers.x, add_filled(bench, set, uint64_t{rows} * inputs * 4));
  HEARTH_ASSIGN(buffers.y, add_filled(bench, set, uint64_t{rows} * outputs * 4));
  HEARTH_ASSIGN(buffers.scratch, add_filled(bench, set, cpu ? 16ull << 20 : 128ull << 20));
  HEARTH_ASSIGN(buffers.counts, add_filled(bench, set, 64 << 10, 0));
  return buffers;
}

KernelCase matmul_case(KernelBench& bench, std::string kernel, const MatmulShape& shape,
                       const MatmulBuffers& buffers) {
  const DeviceCaps& caps = bench.device().caps();
  const FormatInfo& format = format_info(shape.format);
  const MatmulPlan plan = choose_matmul(caps, shape);
  const uint64_t bytes = matrix_bytes(shape.format, shape.outputs, shape.inputs);
  const uint64_t matrices = buffers.rotation_bytes / bytes + 1;
  return {
      .kernel = std::move(kernel),
      .variant = variant_name((plan.shared ? plan.shared->multiply : plan.multiply).pipeline),
      .shape = fmt::format("{} {} x {} x {}", format.name, shape.rows, shape.outputs, shape.inputs),
      .cost = matmul_cost(shape),
      .matrix_units = plan.form == RowForm::kHalves,
      .record = [=, &bench](CommandRecorder& recorder, uint32_t repetition) {
        const uint64_t start = repetition % matrices * round_up(bytes, 256);
        Matmul op{.weight = buffers.weight->slice(start, bytes),
                  .x = buffers.x->slice(0, uint64_t{shape.rows} * shape.inputs * 4),
                  .y = buffers.y->slice(0, uint64_t{shape.rows} * shape.outputs * 4),
                  .scratch = buffers.scratch->all(),
                  .counts = buffers.counts->all(),
                  .shape = shape};
        if (plan.prepare) op.prepared = buffers.x->slice(0, plan.prepared_bytes);
        return record_matmul(recorder, bench.pipelines(), plan, op);
      }};
}

}  // namespace hearth
