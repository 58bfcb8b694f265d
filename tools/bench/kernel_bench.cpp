#include "tools/bench/kernel_bench.h"

#include <algorithm>
#include <utility>

#include "engine/ops/matmul.h"
#include "params/flops_ceiling.h"
#include "params/matrix_ceiling.h"
#include "params/read_ceiling.h"
#include "runtime/gpu_timer.h"
#include "runtime/memory.h"
#include "runtime/queue.h"

namespace hearth {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSamples = 7;
constexpr double kSampleSeconds = 0.02;  // aimed at for one sample; half of it is enough
constexpr double kWarmUpSeconds = 0.5;
constexpr double kIdleSeconds = 0.1;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

CeilingShare ceiling_share(double bytes, double flops, double seconds, const Ceilings& ceilings,
                           bool matrix_units) {
  const double most_flops = matrix_units ? ceilings.matrix_flops_per_s : ceilings.flops_per_s;
  if (seconds <= 0 || most_flops <= 0 || ceilings.read_bytes_per_s <= 0) return {};
  const double reading = bytes / seconds / ceilings.read_bytes_per_s;
  const double computing = flops / seconds / most_flops;
  if (reading >= computing) return {.share = reading, .of = "read"};
  return {.share = computing, .of = matrix_units ? "matrix" : "flops"};
}

bool KernelBench::was_idle() const {
  return !is_cpu(device_.caps()) && seconds_since(last_run_) > kIdleSeconds;
}

Status KernelBench::warm_up(const CommandBuffer& commands) {
  const Clock::time_point begin = Clock::now();
  while (seconds_since(begin) < kWarmUpSeconds) HEARTH_TRY(device_.compute().run(commands));
  return {};
}

Result<double> KernelBench::time(const std::function<Status(CommandRecorder&, uint32_t)>& record) {
  HEARTH_ASSIGN(const auto timer, GpuTimer::create(device_, 1));
  // Doubles the repetitions until a sample is long enough to be accurate. The first round also
  // compiles the pipeline. If the GPU was idle meanwhile, the first round that is long enough warms
  // it up before its samples are taken.
  bool cold = false;
  for (uint32_t repetitions = 1;; repetitions *= 2) {
    HEARTH_ASSIGN(CommandRecorder recorder,
                  CommandRecorder::begin(
                      device_, {.name = "bench", .timer = timer.get(), .timing = Timing::kWhole}));
    for (uint32_t i = 0; i < repetitions; ++i) HEARTH_TRY(record(recorder, i));
    HEARTH_ASSIGN(const CommandBuffer commands, recorder.finish());

    cold |= was_idle();
    std::vector<double> seconds;
    while (seconds.size() < kSamples) {
      HEARTH_TRY(device_.compute().run(commands));
      last_run_ = Clock::now();
      HEARTH_ASSIGN(const auto spans, timer->read());
      seconds.push_back(spans[0].seconds);
      if (seconds.back() < kSampleSeconds / 2) break;  // too short: try more repetitions
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
  // Far larger than any cache of the device. A CPU has less memory to spare and smaller caches. All
  // sizes are powers of two, so that every invocation reads the same number of chunks.
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

  params::Ceiling params{.data = data.all(),
                         .result = result.all(),
                         .chunks = static_cast<uint32_t>(bytes / 16),
                         .rounds = cpu ? 256u : 4096u};
  constexpr uint32_t kChains = 8;
  HEARTH_ASSIGN(
      const Pipeline* read,
      pipelines_.get({.kernel = "read_ceiling",
                      .constants = params::ReadCeilingConstants{.kWorkgroupSize = lanes,
                                                                .kAhead = kAhead,
                                                                .kContiguous = cpu ? 1u : 0u},
                      .subgroup_size = 0}));
  HEARTH_ASSIGN(const Pipeline* flops,
                pipelines_.get({.kernel = "flops_ceiling",
                                .constants = params::FlopsCeilingConstants{.kWorkgroupSize = lanes,
                                                                           .kChains = kChains},
                                .subgroup_size = 0}));
  const auto run = [&](const Pipeline& pipeline) {
    return time([&](CommandRecorder& commands, uint32_t) -> Status {
      commands.dispatch({.pipeline = pipeline, .arguments = params, .groups = {.x = groups}});
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
        pipelines_.get({.kernel = "matrix_ceiling",
                        .constants = params::MatrixCeilingConstants{.kWorkgroupSize = subgroup * 4,
                                                                    .kChains = kChains,
                                                                    .kM = shape->m,
                                                                    .kN = shape->n,
                                                                    .kK = shape->k},
                        .subgroup_size = subgroup}));
    HEARTH_ASSIGN(const double matrix_seconds, run(*matrix));
    const double matrix_done =
        2.0 * shape->m * shape->n * shape->k * kChains * params.rounds * 4 * groups;
    ceilings.matrix_flops_per_s = matrix_done / matrix_seconds;
  }
  return ceilings;
}

Result<KernelTime> KernelBench::measure(const KernelCase& item, const Ceilings& ceilings) {
  HEARTH_ASSIGN(const double seconds, time(item.record));
  const double bytes = item.cost.bytes(), operations = item.cost.operations;
  return KernelTime{
      .kernel = item.kernel,
      .variant = item.variant,
      .shape = item.shape,
      .seconds = seconds,
      .bytes_per_s = bytes / seconds,
      .flops_per_s = operations / seconds,
      .ceiling = ceiling_share(bytes, operations, seconds, ceilings, item.matrix_units)};
}

}  // namespace hearth
