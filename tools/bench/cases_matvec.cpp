#include "tools/bench/matmul_case.h"

namespace hearth {
namespace {

struct Size {
  uint32_t outputs, inputs;
};

// Products with 1 to 8 rows.
Result<KernelCaseSet> matvec_cases(KernelBench& bench) {
  KernelCaseSet set;
  const std::vector<Size> sizes =
      is_cpu(bench.device().caps())
          ? std::vector<Size>{{32000, 288}, {4096, 4096}}
          : std::vector<Size>{{4096, 14336}, {14336, 4096}, {4096, 4096}, {1024, 4096}};
  constexpr uint32_t kMost = 32000;
  HEARTH_ASSIGN(const MatmulBuffers buffers, MatmulBuffers::make(bench, set, 8, kMost, kMost));
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ8_0, WeightFormat::kQ4_0,
                                    WeightFormat::kQ4K, WeightFormat::kQ6K})
    for (const Size& size : sizes)
      for (const uint32_t rows : {1u, 2u, 4u, 8u})
        if (size.inputs % format_info(format).block_weights == 0)
          set.cases.push_back(matmul_case(
              bench, "matvec",
              {.format = format, .rows = rows, .inputs = size.inputs, .outputs = size.outputs},
              buffers));
  return set;
}

const KernelCases matvec_family{"matvec", matvec_cases};

}  // namespace
}  // namespace hearth
