#include "tools/replay/replay_target.h"

#include <chrono>
#include <optional>
#include <utility>

#include "tools/replay/machine_load.h"
#include "tools/replay/prompt_maker.h"
#include "tools/replay/replay_runner.h"
#include "tools/replay/simulated_replay.h"
#include "tools/replay/warm_up.h"

namespace hearth {
namespace {

class SimulatedTarget final : public ReplayTarget {
 public:
  SimulatedTarget(const ModelledDevice& device, const ModelledLimits& wanted)
      : device_(device), limits_(scheduler_limits(device, wanted)) {}

  void describe(ReplaySetting& setting) const override {
    setting.simulated = true;
    setting.model = device_.model;
    setting.device = device_.describe_card();
    setting.limits = limits_;
  }
  std::vector<TokenId> text_ids() const override {
    return text_token_ids(nullptr, device_.vocabulary);
  }
  Status prepare(std::span<const PlannedReplay>, const ReplayInput&, Progress&,
                 ReplayOverhead&) override {
    return {};
  }
  Result<ReplayRun> replay(const PlannedReplay& planned, const ReplayInput& input) override {
    return simulate_replay(device_, planned.limits, planned.policy, input, planned.speculation);
  }

 private:
  const ModelledDevice device_;
  const SchedulerLimits limits_;
};

class DeviceTarget final : public ReplayTarget {
 public:
  explicit DeviceTarget(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  void describe(ReplaySetting& setting) const override {
    setting.simulated = false;
    setting.model = session_->file().name();
    setting.device = session_->device().caps().name;
    setting.limits = session_->engine_options().limits;
  }
  std::vector<TokenId> text_ids() const override {
    return text_token_ids(session_->tokenizer(), session_->model().config().vocabulary);
  }

  Status prepare(std::span<const PlannedReplay> replays, const ReplayInput& input,
                 Progress& progress, ReplayOverhead& overhead) override {
    const auto start = std::chrono::steady_clock::now();
    std::vector<EngineOptions> engines;
    for (const PlannedReplay& planned : replays) engines.push_back(engine_options(planned));
    StepRunner& runner = session_->runner();
    // Some drivers compile a kernel only when it first runs, so a step with new kernels is run.
    WarmUpExecutor executor(runner, [&](const StepBatch& batch) -> Result<bool> {
      const size_t kernels = session_->pipelines().size();
      HEARTH_TRY(runner.prepare(batch));
      return session_->pipelines().size() > kernels;
    });
    HEARTH_TRY(warm_up(executor, engines, input, progress));
    overhead.warm_up_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    overhead.buckets = runner.recorded_steps();
    overhead.kernels = session_->pipelines().size();
    return {};
  }

  Result<ReplayRun> replay(const PlannedReplay& planned, const ReplayInput& input) override {
    HEARTH_ASSIGN(const SwapTraffic swaps_before, session_->runner().swap_traffic());
    const std::optional<CpuCounters> before = read_cpu_counters();
    Result<ReplayRun> run = [&] {
      Engine engine(session_->runner(), session_->tokenizer(), engine_options(planned));
      return run_replay(engine, input);
    }();
    if (!run.ok()) return run;
    const std::optional<CpuCounters> after = read_cpu_counters();
    if (before && after) run->cpu = cpu_use(*before, *after);
    HEARTH_ASSIGN(const SwapTraffic swaps, session_->runner().swap_traffic());
    run->swaps = {.out_bytes = swaps.out_bytes - swaps_before.out_bytes,
                  .in_bytes = swaps.in_bytes - swaps_before.in_bytes,
                  .seconds = swaps.seconds - swaps_before.seconds};
    return run;
  }

 private:
  EngineOptions engine_options(const PlannedReplay& planned) const {
    EngineOptions options = session_->engine_options();
    options.policy = planned.policy;
    options.limits = planned.limits;
    const bool in_place = options.speculation.in_place;
    options.speculation = planned.speculation;
    options.speculation.in_place = in_place;
    return options;
  }

  const std::unique_ptr<Session> session_;
};

}  // namespace

std::unique_ptr<ReplayTarget> make_simulated_target(const ModelledDevice& device,
                                                    const ModelledLimits& wanted) {
  return std::make_unique<SimulatedTarget>(device, wanted);
}

std::unique_ptr<ReplayTarget> make_device_target(std::unique_ptr<Session> session) {
  return std::make_unique<DeviceTarget>(std::move(session));
}

}  // namespace hearth
