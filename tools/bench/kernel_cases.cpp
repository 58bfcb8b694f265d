#include "tools/bench/kernel_cases.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/memory.h"
#include "runtime/queue.h"

namespace hearth {
namespace {

std::vector<const KernelCases*>& registry() {
  static std::vector<const KernelCases*> families;
  return families;
}

}  // namespace

KernelCases::KernelCases(std::string family, Make make_set)
    : family_(std::move(family)), make_(make_set) {
  registry().push_back(this);
}

std::vector<const KernelCases*> KernelCases::all() {
  std::vector<const KernelCases*> families = registry();
  std::sort(families.begin(), families.end(),
            [](const auto* a, const auto* b) { return a->family() < b->family(); });
  return families;
}

std::string variant_name(const PipelineInfo& info) {
  return fmt::format("{}[{}]", info.kernel, fmt::join(info.constants.words(), ","));
}

Result<const Buffer*> add_filled(KernelBench& bench, KernelCaseSet& set, uint64_t bytes,
                                 uint32_t word) {
  HEARTH_ASSIGN(Buffer buffer,
                bench.device().memory().allocate({.bytes = bytes, .name = "bench data"}));
  HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(bench.device()));
  recorder.fill(buffer.all(), word);
  HEARTH_ASSIGN(const CommandBuffer fill, recorder.finish());
  HEARTH_TRY(bench.device().compute().run(fill));
  set.buffers.push_back(std::make_unique<Buffer>(std::move(buffer)));
  return set.buffers.back().get();
}

}  // namespace hearth
