// Small lists that a kernel reads and the host writes: ids, positions, block tables.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "runtime/memory.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {

template <class T>
Result<const Buffer*> add_list(KernelBench& bench, KernelCaseSet& set, const std::vector<T>& list) {
  HEARTH_ASSIGN(Buffer buffer, bench.device().memory().allocate({.bytes = list.size() * sizeof(T),
                                                                 .intent = MemoryIntent::kUpload,
                                                                 .name = "bench list"}));
  std::memcpy(buffer.mapped(), list.data(), list.size() * sizeof(T));
  HEARTH_TRY(buffer.flush());
  set.buffers.push_back(std::make_unique<Buffer>(std::move(buffer)));
  return set.buffers.back().get();
}

}  // namespace hearth
