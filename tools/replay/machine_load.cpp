#include "tools/replay/machine_load.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

namespace hearth {
namespace {

// A tenth of the machine is more than a desktop uses by itself, and enough to swap two policies
// that are close.
constexpr double kNoticeableShare = 0.1;
// With more than that idle, the engine found a free core when it wanted one.
constexpr double kIdleShare = 0.3;

double timeval_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

std::optional<ProcStat> parse_proc_stat(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string line;
  ProcStat stat;
  bool found = false;
  while (std::getline(lines, line) && line.starts_with("cpu")) {
    std::istringstream fields(line);
    std::string name;
    fields >> name;
    if (name != "cpu") {
      ++stat.cores;
      continue;
    }
    double user = 0, nice = 0, system = 0, idle = 0, io_wait = 0, irq = 0, soft_irq = 0, steal = 0;
    fields >> user >> nice >> system >> idle >> io_wait >> irq >> soft_irq >> steal;
    found = !fields.fail();
    // What a hypervisor gave to others is as lost to us as what other programs used.
    stat.busy_ticks = user + nice + system + irq + soft_irq + steal;
  }
  if (!found || stat.cores == 0) return std::nullopt;
  return stat;
}

std::optional<CpuCounters> read_cpu_counters() {
  std::ifstream file("/proc/stat");
  std::ostringstream text;
  text << file.rdbuf();
  const std::optional<ProcStat> stat = parse_proc_stat(text.view());
  const long ticks_per_s = sysconf(_SC_CLK_TCK);
  rusage own{};
  if (!stat || ticks_per_s <= 0 || getrusage(RUSAGE_SELF, &own) != 0) return std::nullopt;
  return CpuCounters{
      .wall = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
                  .count(),
      .machine = stat->busy_ticks / static_cast<double>(ticks_per_s),
      .own = timeval_seconds(own.ru_utime) + timeval_seconds(own.ru_stime),
      .cores = stat->cores};
}

CpuUse cpu_use(const CpuCounters& before, const CpuCounters& after) {
  const double capacity = (after.wall - before.wall) * after.cores;
  if (capacity <= 0) return {};
  const double own = after.own - before.own;
  // The machine's counters tick a hundred times a second, ours are exact.
  const double others = std::max(0.0, after.machine - before.machine - own);
  return {.own = std::min(own / capacity, 1.0), .others = std::min(others / capacity, 1.0)};
}

bool was_busy(const CpuUse& use) {
  return use.others >= kNoticeableShare && 1 - use.own - use.others <= kIdleShare;
}

std::string busy_warning(std::span<const PolicyLoad> loads) {
  std::string when;
  for (const PolicyLoad& load : loads) {
    if (!was_busy(load.use)) continue;
    when += fmt::format("{}{:.0f} % during {}", when.empty() ? "" : ", ", load.use.others * 100,
                        load.policy);
  }
  if (when.empty()) return {};
  return fmt::format(
      "warning: other programs used the processor ({}), which may change the ranking; repeat this "
      "on an idle machine, or use --simulate",
      when);
}

}  // namespace hearth
