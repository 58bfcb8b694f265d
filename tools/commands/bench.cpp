// hearth bench --kernels: time, bytes/s and FLOP/s of each kernel beside the device's own ceilings.
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "runtime/device.h"
#include "runtime/instance.h"
#include "runtime/pipeline_cache.h"
#include "tools/bench/kernel_bench.h"
#include "tools/bench/kernel_cases.h"
#include "tools/commands/command.h"

namespace hearth {
namespace {

nlohmann::json to_json(const DeviceCaps& caps, const Ceilings& ceilings,
                       const std::vector<KernelTime>& times) {
  nlohmann::json kernels = nlohmann::json::array();
  for (const KernelTime& time : times)
    kernels.push_back({{"kernel", time.kernel},
                       {"variant", time.variant},
                       {"shape", time.shape},
                       {"seconds", time.seconds},
                       {"bytes_per_s", time.bytes_per_s},
                       {"flops_per_s", time.flops_per_s},
                       {"share", time.share}});
  return {{"device", caps.name},
          {"driver", caps.driver},
          {"ceilings",
           {{"read_bytes_per_s", ceilings.read_bytes_per_s},
            {"flops_per_s", ceilings.flops_per_s},
            {"matrix_flops_per_s", ceilings.matrix_flops_per_s}}},
          {"kernels", kernels}};
}

class BenchCommand : public Command {
 public:
  BenchCommand() : Command("bench", "How fast this machine is") {}

  void declare(CLI::App& app) override {
    app.add_flag("--kernels", kernels_, "Time every kernel beside the device's ceilings")
        ->required();
    app.add_option("--filter", filter_, "Only kernel families whose name contains this");
    app.add_option("-d,--device", wanted_, "The device: an index or part of a name");
    app.add_flag("--json", json_, "One JSON object on stdout");
  }

  Status run() override {
    HEARTH_ASSIGN(const auto instance, Instance::create({}));
    HEARTH_ASSIGN(const auto device, Device::open(*instance, wanted_));
    HEARTH_ASSIGN(const auto pipelines,
                  PipelineStore::create(*device, {.cache_directory = default_cache_directory()}));
    KernelBench bench(*device, *pipelines);
    HEARTH_TRY(bench.warm_up());
    HEARTH_ASSIGN(const Ceilings ceilings, bench.measure_ceilings());
    if (!json_) {
      fmt::print("{}: reads {:.1f} GB/s, {:.3f} TFLOP/s in f32, {:.1f} on matrix units\n\n",
                 device->caps().name, ceilings.read_bytes_per_s * 1e-9,
                 ceilings.flops_per_s * 1e-12, ceilings.matrix_flops_per_s * 1e-12);
      fmt::print("{:<12} {:<26} {:>12} {:>10} {:>10} {:>7}  {}\n", "kernel", "shape", "time us",
                 "GB/s", "TFLOP/s", "share", "variant");
    }
    std::vector<KernelTime> times;
    for (const KernelCases* family : KernelCases::all()) {
      if (family->family().find(filter_) == std::string::npos) continue;
      HEARTH_ASSIGN(const KernelCaseSet set, family->make(bench));
      for (const KernelCase& item : set.cases) {
        HEARTH_ASSIGN(const KernelTime time, bench.measure(item, ceilings));
        if (!json_)
          fmt::print("{:<12} {:<26} {:>12.2f} {:>10.1f} {:>10.3f} {:>6.1f}%  {}\n", time.kernel,
                     time.shape, time.seconds * 1e6, time.bytes_per_s * 1e-9,
                     time.flops_per_s * 1e-12, time.share * 100, time.variant);
        times.push_back(time);
      }
    }
    if (json_) fmt::print("{}\n", to_json(device->caps(), ceilings, times).dump(2));
    return {};
  }

 private:
  bool kernels_ = false, json_ = false;
  std::string filter_, wanted_;
};

BenchCommand bench_command;

}  // namespace
}  // namespace hearth
