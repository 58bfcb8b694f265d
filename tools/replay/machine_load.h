// Whether other programs used the processor while a policy was measured. Reading the counters is
// Linux's; what follows from them is pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

// Processor time since some fixed moment, in seconds.
struct CpuCounters {
  double wall = 0;     // real time
  double machine = 0;  // used by all programs on all cores
  double own = 0;      // used by this process
  double cores = 0;
};
// Nothing where the system does not say.
std::optional<CpuCounters> read_cpu_counters();

// All processor time in use and the number of cores, from the text of /proc/stat.
struct ProcStat {
  double busy_ticks = 0;
  double cores = 0;
};
std::optional<ProcStat> parse_proc_stat(std::string_view text);

// Shares of what all cores could do between two readings, from 0 to 1.
struct CpuUse {
  double own = 0, others = 0;
};
CpuUse cpu_use(const CpuCounters& before, const CpuCounters& after);

// Whether others may have slowed us down: they used a noticeable share, and little was left idle.
bool was_busy(const CpuUse& use);

struct PolicyLoad {
  std::string policy;
  CpuUse use;
};
// One line for the user if the machine was busy under any policy; otherwise empty.
std::string busy_warning(std::span<const PolicyLoad> loads);

}  // namespace hearth
