// A limit that `hearth replay --sweep` tries several values of. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/scheduling/scheduler.h"
#include "runtime/result.h"

namespace hearth {

enum class SweptLimit : uint8_t { kMaxSequences, kMaxStepTokens };

struct Sweep {
  SweptLimit limit = SweptLimit::kMaxSequences;
  std::vector<uint32_t> values;  // ascending, at least one, none twice

  // "max-seqs" or "max-step-tokens", as on the command line.
  std::string_view parameter() const;
  uint32_t largest() const { return values.back(); }
  // The swept limit.
  uint32_t value_in(const SchedulerLimits& limits) const;
  // The limits with the swept one set to `value`.
  SchedulerLimits at(uint32_t value, SchedulerLimits limits) const;
};

// Parses "max-seqs=1,2,4,8". "1..64" stands for 1 and its doublings up to 64, and 64 itself; so
// does "...", between two values. The order does not matter.
Result<Sweep> parse_sweep(std::string_view text);

}  // namespace hearth
