#include "tools/bench/time_kernels.h"

#include <vector>

#include <fmt/format.h>

#include "runtime/device.h"
#include "runtime/device_check.h"
#include "runtime/instance.h"
#include "runtime/pipeline_cache.h"
#include "tools/bench/kernel_cases.h"
#include "tools/bench/reports.h"

namespace hearth {

Status time_kernels(const std::string& device_name, const std::string& filter,
                    BenchReport& report) {
  std::vector<const KernelCases*> families = KernelCases::all();
  std::erase_if(families, [&](const KernelCases* each) {
    return each->family().find(filter) == std::string::npos;
  });
  if (families.empty())
    return Error{ErrorKind::kInvalid, fmt::format("no kernel family has '{}' in its name", filter)};
  HEARTH_ASSIGN(const auto instance, Instance::create({}));
  HEARTH_ASSIGN(const auto device, Device::open(*instance, device_name));
  HEARTH_ASSIGN(const auto pipelines,
                PipelineStore::create(*device, {.cache_directory = default_cache_directory()}));
  HEARTH_TRY(check_device(*device, *pipelines));
  report.set("device", device->caps().name);
  report.set("driver", device->caps().driver);
  KernelBench bench(*device, *pipelines);
  HEARTH_ASSIGN(const Ceilings ceilings, report.measure_ceilings(bench, device->caps()));
  if (!report.is_json()) print_kernel_header();
  Progress progress = report.progress("timing kernels");
  for (size_t i = 0; i < families.size(); ++i) {
    HEARTH_ASSIGN(const KernelCaseSet set, families[i]->make(bench));
    const size_t cases = set.cases.size();
    for (size_t k = 0; k < cases; ++k) {
      // Every family counts the same: how many cases the next ones have is not known yet.
      progress.update(i * cases + k, families.size() * cases,
                      fmt::format("{} {}", set.cases[k].kernel, set.cases[k].shape));
      HEARTH_ASSIGN(const KernelTime time, bench.measure(set.cases[k], ceilings));
      progress.clear();
      report.add(time);
    }
  }
  progress.clear();
  report.end("kernels");
  return {};
}

}  // namespace hearth
