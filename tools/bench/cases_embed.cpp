#include <fmt/format.h>

#include "engine/ops/embed.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {
namespace {

// Every row reads the same id. The filled buffer makes it larger than the vocabulary.
Result<KernelCaseSet> embed_cases(KernelBench& bench) {
  KernelCaseSet set;
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ8_0, WeightFormat::kQ6K}) {
    for (const uint32_t rows : {1u, 64u, 2048u}) {
      const EmbedShape shape{.format = format, .rows = rows, .width = 4096, .vocabulary = 4096};
      const FormatInfo& info = format_info(format);
      const uint64_t blocks = uint64_t{shape.vocabulary} * shape.width / info.block_weights;
      HEARTH_ASSIGN(const Buffer* weight,
                    add_filled(bench, set, device_layout(format, blocks).total_bytes));
      HEARTH_ASSIGN(const Buffer* ids, add_filled(bench, set, uint64_t{rows} * 4));
      HEARTH_ASSIGN(const Buffer* y, add_filled(bench, set, uint64_t{rows} * shape.width * 4));
      const KernelPlan plan = choose_embed(bench.device().caps(), shape);
      set.cases.push_back({.kernel = fmt::format("embed_{}", info.header),
                           .variant = variant_name(plan.pipeline),
                           .shape = fmt::format("{} x {}", rows, shape.width),
                           .cost = embed_cost(shape),
                           .record = [=, &bench](CommandRecorder& recorder, uint32_t) {
                             return record_embed(recorder, bench.pipelines(), plan,
                                                 {.ids = ids->all(),
                                                  .sampled = ids->all(),
                                                  .weight = weight->all(),
                                                  .y = y->all(),
                                                  .shape = shape});
                           }});
    }
  }
  return set;
}

const KernelCases embed_family{"embed", embed_cases};

}  // namespace
}  // namespace hearth
