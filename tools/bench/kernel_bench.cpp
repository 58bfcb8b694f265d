#include "tools/bench/kernel_bench.h"

#include <algorithm>
#include <utility>

#include "engine/ops/kernel_choice.h"
#include "params/ceiling.h"
#include "runtime/gpu_timer.h"
#include "runtime/memory.h"
#include "runtime/queue.h"

namespace hearth {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSamples = 7;
constexpr double kSampleSeconds = 0.02;  // how long one sample should last at least
constexpr double kWarmUpSeconds = 0.5;
constexpr double kRestSeconds = 0.1;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

bool KernelBench::has_rested() const {
  return !is_cpu(device_.caps()) && seconds_since(last_run_) > kRestSeconds;
}

Status KernelBench::warm_up(const CommandBuffer& commands) {
  const Clock::time_point begin = Clock::now();
  while (seconds_since(begin) < kWarmUpSeconds) HEARTH_TRY(device_.compute().run(commands));
  return {};
}

Result<double> KernelBench::time(const std::function<Status(CommandRecorder&, uint32_t)>& record) {
  HEARTH_ASSIGN(const auto timer, GpuTimer::create(device_, 1));
  // Doubles the repetitions until a sample is long enough to be worth reading. The first round also
  // compiles the pipeline; clocks are warmed up by the first that is long enough.
  bool cold = false;
  for (uint32_t repetitions = 1;; repetitions *= 2) {
    HEARTH_ASSIGN(CommandRecorder recorder,
                  CommandRecorder::begin(
                      device_, {.name = "bench", .timer = timer.get(), .timing = Timing::kWhole}));
    for (uint32_t i = 0; i < repetitions; ++i) HEARTH_TRY(record(recorder, i));
    HEARTH_ASSIGN(const CommandBuffer commands, recorder.finish());

    cold |= has_rested();
    std::vector<double> seconds;
    while (seconds.size() < kSamples) {
      HEARTH_TRY(device_.compute().run(commands));
      last_run_ = Clock::now();
      HEARTH_ASSIGN(const auto spans, timer->read());
      seconds.push_back(spans[0].seconds);
      if (seconds.back() < kSampleSeconds / 2) break;  // too short: more repetitions
      if (!std::exchange(cold, false)) continue;
      HEARTH_TRY(warm_up(commands));
      seconds.clear();
    }
    if (seconds.size() < kSamples && repetitions < 65536) continue;
    std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
    return seconds[seconds.size() / 2] / repetitions;
  }
}

Result<Ceilings> KernelBench::measure_ceilings() {
  // Far larger than any cache of the device; on a CPU memory is scarce and caches are small. All
  // are powers of two, so that every invocation reads the same number of chunks.
  const bool cpu = is_cpu(device_.caps());
  const uint64_t bytes = cpu ? 256ull << 20 : 1ull << 30;
  const uint32_t lanes = cpu ? 64 : 256;
  const uint32_t groups = cpu ? 64 : 4096;
  constexpr uint32_t kAhead = 4;
  HEARTH_ASSIGN(const Buffer data,
                device_.memory().allocate({.bytes = bytes, .name = "ceiling data"}));
  HEARTH_ASSIGN(const Buffer result,
                device_.memory().allocate({.bytes = groups * 4, .name = "ceiling result"}));
  HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device_));
  recorder.fill(data.all(), 0x3c003c00);
  HEARTH_ASSIGN(const CommandBuffer fill, recorder.finish());
  HEARTH_TRY(device_.compute().run(fill));

  params::Ceiling params{.data = data.address(),
                         .result = result.address(),
                         .chunks = static_cast<uint32_t>(bytes / 16),
                         .rounds = cpu ? 256u : 4096u};
  constexpr uint32_t kChains = 8;
  HEARTH_ASSIGN(const Pipeline* read,
                pipelines_.get({"read_ceiling", {lanes, kAhead, cpu ? 1u : 0u}}));
  HEARTH_ASSIGN(const Pipeline* flops, pipelines_.get({"flops_ceiling", {lanes, kChains}}));
  const auto run = [&](const Pipeline& pipeline) {
    return time([&](CommandRecorder& commands, uint32_t) -> Status {
      commands.dispatch({.pipeline = pipeline,
                         .push = params,
                         .groups = {.x = groups},
                         .accesses = {reads(data.all()), writes(result.all())}});
      return {};
    });
  };
  HEARTH_ASSIGN(const double read_seconds, run(*read));
  HEARTH_ASSIGN(const double flops_seconds, run(*flops));
  const double flops_done = 8.0 * kChains * params.rounds * lanes * groups;
  Ceilings ceilings{.read_bytes_per_s = static_cast<double>(bytes) / read_seconds,
                    .flops_per_s = flops_done / flops_seconds};
  if (const auto shape = coopmat_shape(device_.caps()); shape && !cpu) {
    const uint32_t subgroup = device_.caps().subgroup_size;
    HEARTH_ASSIGN(
        const Pipeline* matrix,
        pipelines_.get(
            {"matrix_ceiling", {subgroup * 4, kChains, shape->m, shape->n, shape->k}, subgroup}));
    HEARTH_ASSIGN(const double matrix_seconds, run(*matrix));
    const double matrix_done =
        2.0 * shape->m * shape->n * shape->k * kChains * params.rounds * 4 * groups;
    ceilings.matrix_flops_per_s = matrix_done / matrix_seconds;
  }
  return ceilings;
}

Result<KernelTime> KernelBench::measure(const KernelCase& item, const Ceilings& ceilings) {
  HEARTH_ASSIGN(const double seconds, time(item.record));
  const double bytes_per_s = item.bytes / seconds;
  const double flops_per_s = item.flops / seconds;
  const double most_flops = item.matrix_units ? ceilings.matrix_flops_per_s : ceilings.flops_per_s;
  return KernelTime{
      .kernel = item.kernel,
      .variant = item.variant,
      .shape = item.shape,
      .seconds = seconds,
      .bytes_per_s = bytes_per_s,
      .flops_per_s = flops_per_s,
      .share = std::max(bytes_per_s / ceilings.read_bytes_per_s, flops_per_s / most_flops)};
}

}  // namespace hearth
