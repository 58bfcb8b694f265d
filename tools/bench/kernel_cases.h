// The kernels and shapes that `hearth bench --kernels` times. One file a kernel family,
// cases_<family>.cpp, with one static KernelCases object that the command finds by itself.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/pipeline.h"
#include "tools/bench/kernel_bench.h"

namespace hearth {

// Cases and the buffers they run on. One set is made, measured and dropped before the next.
struct KernelCaseSet {
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<KernelCase> cases;
};

class KernelCases {
 public:
  using Make = Result<KernelCaseSet> (*)(KernelBench& bench);

  // `family` is what --filter is compared with before the buffers are made.
  KernelCases(std::string family, Make make_set);

  const std::string& family() const { return family_; }
  Result<KernelCaseSet> make(KernelBench& bench) const { return make_(bench); }

  // Every family of the program, by name.
  static std::vector<const KernelCases*> all();

 private:
  std::string family_;
  Make make_;
};

// "matmul_reduce[256,0,8,64]": the kernel and its specialization constants.
std::string variant_name(const PipelineInfo& info);

// A buffer of equal words; unless another is named every 16-bit half is a small number: as f16 or
// f32 data, never zero, never denormal.
Result<const Buffer*> add_filled(KernelBench& bench, KernelCaseSet& set, uint64_t bytes,
                                 uint32_t word = 0x3a663a66);

}  // namespace hearth
