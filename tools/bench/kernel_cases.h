// The kernels and shapes that `hearth bench --kernels` times. Each kernel family has one file,
// cases_<family>.cpp, with one static KernelCases object; the command finds it by itself.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/pipeline.h"
#include "tools/bench/kernel_bench.h"

namespace hearth {

// Cases and the buffers they run on. Each set is measured and freed before the next is made.
struct KernelCaseSet {
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<KernelCase> cases;
};

class KernelCases {
 public:
  using Make = Result<KernelCaseSet> (*)(KernelBench& bench);

  // --filter looks at `family`, before any buffers are made.
  KernelCases(std::string family, Make make_set);

  const std::string& family() const { return family_; }
  Result<KernelCaseSet> make(KernelBench& bench) const { return make_(bench); }

  // Every family in the program, ordered by name.
  static std::vector<const KernelCases*> all();

 private:
  std::string family_;
  Make make_;
};

// "matmul_reduce[256,0,8,64]": the kernel and its specialization constants.
std::string variant_name(const PipelineInfo& info);

// A buffer filled with one word. The default is 0.8 as f16 and 0.0009 as f32: real data is neither
// zero nor denormal, which may run at another speed.
Result<const Buffer*> add_filled(KernelBench& bench, KernelCaseSet& set, uint64_t bytes,
                                 uint32_t word = 0x3a663a66);

}  // namespace hearth
