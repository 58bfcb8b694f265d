#include "tools/bench/bench_report.h"

#include <fmt/format.h>

#include "tools/bench/reports.h"

namespace hearth {

Result<Ceilings> BenchReport::measure_ceilings(KernelBench& bench, const DeviceCaps& caps) {
  Progress shown = progress();
  shown.update(0, 1, "the device's ceilings");
  HEARTH_ASSIGN(const Ceilings ceilings, bench.measure_ceilings());
  shown.clear();
  if (!json_) print_ceilings(caps, ceilings);
  set("ceilings", to_json(ceilings));
  return ceilings;
}

void BenchReport::end(const std::string& name) {
  set(name, std::move(results_));
  end();
}

void BenchReport::end() const {
  if (!json_) return;
  // A device's or a file's name may not be UTF-8.
  fmt::print("{}\n", object_.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace hearth
