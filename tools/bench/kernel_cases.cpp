#include "tools/bench/kernel_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/ops/matvec.h"
#include "engine/ops/norm.h"
#include "runtime/memory.h"
#include "runtime/queue.h"

namespace hearth {
namespace {

std::string variant_name(const PipelineInfo& info) {
  return fmt::format("{}[{}]", info.kernel, fmt::join(info.constants, ","));
}

// A buffer with every 16-bit half a small number: as f16 or f32 data, never zero, never denormal.
Result<const Buffer*> add_filled(KernelBench& bench, KernelCaseSet& set, uint64_t bytes) {
  HEARTH_ASSIGN(Buffer buffer, bench.device().memory().allocate(
                                   {.bytes = bytes, .name = "bench data"}));
  HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(bench.device()));
  recorder.fill(buffer.all(), 0x3a663a66);
  HEARTH_ASSIGN(const CommandBuffer fill, recorder.finish());
  HEARTH_TRY(bench.device().compute().run(fill));
  set.buffers.push_back(std::make_unique<Buffer>(std::move(buffer)));
  return set.buffers.back().get();
}

Result<KernelCaseSet> rms_norm_cases(KernelBench& bench) {
  KernelCaseSet set;
  const DeviceCaps& caps = bench.device().caps();
  for (const RmsNormShape shape : {RmsNormShape{1, 4096}, {64, 4096}, {2048, 4096}}) {
    const uint64_t bytes = uint64_t{shape.rows} * shape.width * 4;
    HEARTH_ASSIGN(const Buffer* x, add_filled(bench, set, bytes));
    HEARTH_ASSIGN(const Buffer* y, add_filled(bench, set, bytes));
    HEARTH_ASSIGN(const Buffer* weight, add_filled(bench, set, uint64_t{shape.width} * 4));
    const KernelPlan plan = choose_rms_norm(caps, shape);
    set.cases.push_back(
        {.kernel = "rms_norm",
         .variant = variant_name(plan.pipeline),
         .shape = fmt::format("{} x {}", shape.rows, shape.width),
         .bytes = static_cast<double>(2 * bytes + uint64_t{shape.width} * 4),
         .flops = 4.0 * shape.rows * shape.width,
         .record = [=, &bench](CommandRecorder& recorder, uint32_t) {
           return record_rms_norm(recorder, bench.pipelines(), plan,
                                  {.x = x->all(), .weight = weight->all(), .y = y->all(),
                                   .shape = shape});
         }});
  }
  return set;
}

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
      set.cases.push_back(
          {.kernel = "matvec_f16",
           .variant = variant_name(plan.pipeline),
           .shape = fmt::format("{} x {} x {}", rows, outputs, inputs),
           .bytes = static_cast<double>(matrix_bytes + x->bytes() + y->bytes()),
           .flops = 2.0 * rows * outputs * inputs,
           .record = [=, &bench](CommandRecorder& recorder, uint32_t repetition) {
             const uint64_t which = repetition % matrices;
             return record_matvec(recorder, bench.pipelines(), plan,
                                  {.weight = weight->slice(which * matrix_bytes, matrix_bytes),
                                   .x = x->all(), .y = y->all(), .shape = shape});
           }});
    }
  }
  return set;
}

}  // namespace

std::vector<MakeKernelCases> kernel_case_makers() { return {rms_norm_cases, matvec_cases}; }

}  // namespace hearth
