// Compiles every pipeline that a llama-8b needs on AMD's GPUs, with AMD's compiler and without a
// GPU: Mesa's RADV can pretend to be any of them (RADV_FORCE_FAMILY, in Mesa 25). Prints a table
// and what is wrong with it: pipelines that do not compile, spill, or take long, and memory-bound
// ones that leave a SIMD with fewer than 4 waves.
//
//   amd_pipelines [--all] [FAMILY...]     --all: every pipeline, not only the worst of each kernel
//
// Exits with 1 if anything is wrong, with 77 if there is no such driver.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/device.h"
#include "runtime/instance.h"
#include "runtime/pipeline.h"
#include "tests/portability/llama_pipelines.h"

namespace hearth::testing {
namespace {

constexpr int kSkipped = 77;
constexpr double kMostSeconds = 2.0;  // of CPU time
constexpr uint32_t kFewestWaves = 4;  // per SIMD, of memory-bound kernels

constexpr const char* kAmdFamilies[] = {"VEGA10", "NAVI10", "NAVI21", "NAVI31", "GFX1200"};

struct Compiled {
  NeededPipeline needed;
  double seconds = 0;
  std::map<std::string, double> statistics;

  uint32_t value(const char* name) const {
    const auto place = statistics.find(name);
    return place != statistics.end() ? static_cast<uint32_t>(place->second) : 0;
  }
  uint32_t spills() const { return value("Spilled SGPRs") + value("Spilled VGPRs"); }
  uint32_t waves() const { return value("Subgroups per SIMD"); }
};

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<std::string> faults_of(const Compiled& pipeline) {
  std::vector<std::string> faults;
  if (pipeline.spills() > 0) faults.push_back(fmt::format("{} spills", pipeline.spills()));
  if (pipeline.seconds > kMostSeconds) faults.push_back(fmt::format("{:.1f} s", pipeline.seconds));
  if (pipeline.needed.memory_bound && pipeline.waves() < kFewestWaves)
    faults.push_back(fmt::format("{} waves", pipeline.waves()));
  return faults;
}

// "kRows=8 kTile=16": those that are not 0.
std::string constants_of(const PipelineInfo& info) {
  std::vector<std::string> texts;
  for (const auto& [name, word, is_float] : info.constants.named())
    if (word != 0)
      texts.push_back(is_float ? fmt::format("{}={}", name, std::bit_cast<float>(word))
                               : fmt::format("{}={}", name, word));
  return fmt::format("{}", fmt::join(texts, " "));
}

void print(const Compiled& pipeline) {
  const PipelineInfo& info = pipeline.needed.info;
  fmt::print("  {:<24} {:5} {:6} {:7} {:6} {:6.2f}  {}\n", info.kernel, pipeline.value("VGPRs"),
             pipeline.spills(), pipeline.value("LDS size"), pipeline.waves(), pipeline.seconds,
             fmt::format("[{}]{}{}", constants_of(info),
                         pipeline.needed.memory_bound ? " memory-bound" : "",
                         faults_of(pipeline).empty()
                             ? std::string()
                             : fmt::format(" WRONG: {}", fmt::join(faults_of(pipeline), ", "))));
}

// The number of pipelines with something wrong.
Result<size_t> check_family(Instance& instance, size_t position, const std::string& family,
                            bool print_all) {
  HEARTH_ASSIGN(const auto device, Device::create(instance, position, DeviceUse::kCompile));
  const DeviceCaps& caps = device->caps();
  HEARTH_ASSIGN(const auto store, PipelineStore::create(*device, {.statistics = true}));
  HEARTH_ASSIGN(const std::vector<NeededPipeline> needed, llama_pipelines(caps));
  std::vector<Compiled> compiled;
  size_t wrong = 0;
  for (const NeededPipeline& pipeline : needed) {
    const double begin = thread_seconds();
    const Result<const Pipeline*> made = store->get(pipeline.info);
    Compiled one{.needed = pipeline, .seconds = thread_seconds() - begin};
    if (!made.ok()) {
      fmt::print("  {}: {}\n", family, made.error().message);
      ++wrong;
      continue;
    }
    HEARTH_ASSIGN(const std::vector<PipelineStatistic> statistics,
                  read_statistics(*device, **made));
    for (const PipelineStatistic& statistic : statistics)
      one.statistics[statistic.name] = statistic.value;
    wrong += faults_of(one).empty() ? 0 : 1;
    compiled.push_back(std::move(one));
  }
  double seconds = 0;
  for (const Compiled& one : compiled) seconds += one.seconds;
  fmt::print("{}: {} pipelines in {:.1f} s, subgroups of {}, {} fragments, {} wrong\n", family,
             needed.size(), seconds, caps.subgroup_size, caps.coopmat_shapes.size(), wrong);
  fmt::print("  {:<24} {:>5} {:>6} {:>7} {:>6} {:>6}\n", "kernel", "VGPRs", "spills", "LDS",
             "waves", "s");
  // Of each kernel the one that leaves room for the fewest waves, and everything that is wrong.
  std::map<std::string, const Compiled*> worst;
  for (const Compiled& one : compiled) {
    const Compiled*& place = worst[one.needed.info.kernel];
    if (place == nullptr || one.waves() < place->waves()) place = &one;
  }
  for (const Compiled& one : compiled)
    if (print_all || worst[one.needed.info.kernel] == &one || !faults_of(one).empty()) print(one);
  return wrong;
}

Result<int> run(const std::vector<std::string>& families, bool print_all) {
  size_t wrong = 0;
  for (const std::string& family : families) {
    setenv("RADV_FORCE_FAMILY", family.c_str(), 1);
    setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);  // times are those of the compiler
    HEARTH_ASSIGN(const auto instance, Instance::create({.application = "amd_pipelines"}));
    const auto& devices = instance->devices();
    const auto radv = std::ranges::find(devices, DriverId::kRadv, &DeviceCaps::driver_id);
    if (radv == devices.end()) {
      fmt::print("skipped: there is no RADV that can pretend to be a {} (Mesa 25)\n", family);
      return kSkipped;
    }
    HEARTH_ASSIGN(
        const size_t found,
        check_family(*instance, static_cast<size_t>(radv - devices.begin()), family, print_all));
    wrong += found;
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hearth::testing

int main(int argc, char** argv) {
  std::vector<std::string> families(argv + 1, argv + argc);
  const bool print_all = std::erase(families, "--all") > 0;
  if (families.empty())
    families.assign(std::begin(hearth::testing::kAmdFamilies),
                    std::end(hearth::testing::kAmdFamilies));
  const hearth::Result<int> code = hearth::testing::run(families, print_all);
  if (code.ok()) return *code;
  fmt::print(stderr, "amd_pipelines: {}\n", code.error().message);
  return 1;
}
