#include <fmt/format.h>

#include "engine/ops/block_copy.h"
#include "params/block_copy.h"
#include "tools/bench/add_list.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {
namespace {

// The KV cache of Llama-3-8B in F16: 32 layers of 8 heads of size 128. Blocks are copied within the
// pool, as for a fork, and swapped out.
Result<KernelCaseSet> block_copy_cases(KernelBench& bench) {
  KernelCaseSet set;
  constexpr uint32_t kPlanes = 64, kBlocks = 64, kBlockBytes = 8 * 16 * 128 * 2;
  constexpr uint64_t kPoolBytes = uint64_t{kPlanes} * kBlocks * kBlockBytes;
  HEARTH_ASSIGN(const Buffer* pool, add_filled(bench, set, kPoolBytes));
  HEARTH_ASSIGN(
      Buffer host_buffer,
      bench.device().memory().allocate(
          {.bytes = kPoolBytes / 2, .intent = MemoryIntent::kReadback, .name = "bench swap"}));
  set.buffers.push_back(std::make_unique<Buffer>(std::move(host_buffer)));
  const Buffer* host = set.buffers.back().get();
  for (const bool swap : {false, true}) {
    const Buffer* to = swap ? host : pool;
    const uint32_t to_blocks = swap ? kBlocks / 2 : kBlocks;
    std::vector<params::CopyPlane> planes;
    for (uint64_t p = 0; p < kPlanes; ++p)
      planes.push_back({pool->address() + p * kBlocks * kBlockBytes,
                        to->address() + p * to_blocks * kBlockBytes, kBlockBytes, 0});
    HEARTH_ASSIGN(const Buffer* plane_buffer, add_list(bench, set, planes));
    for (const uint32_t pairs : {1u, 32u}) {
      std::vector<params::CopyPair> list;
      for (uint32_t i = 0; i < pairs; ++i) list.push_back({i, swap ? i : kBlocks / 2 + i});
      HEARTH_ASSIGN(const Buffer* pair_buffer, add_list(bench, set, list));
      const BlockCopyShape shape{.pairs = pairs, .planes = kPlanes, .block_bytes = kBlockBytes};
      const KernelPlan plan = choose_block_copy(bench.device().caps(), shape);
      set.cases.push_back({.kernel = swap ? "block_copy_swap_out" : "block_copy_fork",
                           .variant = variant_name(plan.pipeline),
                           .shape = fmt::format("{} x {} x {} bytes", pairs, kPlanes, kBlockBytes),
                           .cost = block_copy_cost(shape),
                           .record = [=, &bench](CommandRecorder& recorder, uint32_t) {
                             return record_block_copy(recorder, bench.pipelines(), plan,
                                                      {.from = pool->all(),
                                                       .to = to->all(),
                                                       .planes = plane_buffer->all(),
                                                       .pairs = pair_buffer->all(),
                                                       .shape = shape});
                           }});
    }
  }
  return set;
}

const KernelCases block_copy_family{"block_copy", block_copy_cases};

}  // namespace
}  // namespace hearth
