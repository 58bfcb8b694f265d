#include "tools/replay/simulated_replay.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "tools/replay/modelled_executor.h"
#include "tools/replay/virtual_clock.h"

namespace hearth {
namespace {

// Arrivals to the nanosecond, as the clock counts, so that times are differences of whole numbers.
Trace with_whole_nanoseconds(Trace trace) {
  for (TraceRequest& request : trace.requests) {
    const std::chrono::duration<double> arrival(request.arrival_seconds);
    request.arrival_seconds =
        std::chrono::duration<double>(std::chrono::round<std::chrono::nanoseconds>(arrival))
            .count();
  }
  return trace;
}

// Two threads move the clock, never at the same time: the engine's, which waits for steps, and this
// one, which moves on to the next arrival when the engine has nothing left to do. Requests are
// submitted by whichever moves the clock past their arrival, before the engine plans its next step.
class Simulation {
 public:
  Simulation(const ModelledDevice& device, const SchedulerLimits& limits, const Policy& policy,
             const ReplayInput& input, const SpeculationOptions& speculation)
      : trace_(with_whole_nanoseconds(input.trace)),
        input_{.trace = trace_,
               .prompts = input.prompts,
               .begin = input.begin,
               .step = input.step,
               .temperature = input.temperature,
               .beam = input.beam},
        executor_(device, clock_),
        engine_(executor_, nullptr, engine_options(device, limits, policy, speculation)) {
    cursor_.emplace(engine_.records(), [this](const StepRecord& record) {
      tally_.add(record);
      if (input_.step) input_.step(record);
    });
  }

  Result<ReplayRun> run() {
    if (input_.begin) input_.begin(0);
    clock_.before_sleep([this] { cursor_->read_new(); });
    add_arrivals();
    while (clock_.run_next()) {
      wait_for_submitted();
      // The engine has published its last record when this has run.
      engine_.inspect([](const Scheduler&) {});
      if (!refused_.ok()) return refused_.error();
    }
    cursor_->read_new();
    HEARTH_ASSIGN(ReplayRun run, collect_run(engine_, trace_, 0, streams_, tally_));
    HEARTH_ASSIGN(run.swaps, executor_.swap_traffic());
    return run;
  }

 private:
  EngineOptions engine_options(const ModelledDevice& device, const SchedulerLimits& limits,
                               const Policy& policy, const SpeculationOptions& speculation) {
    EngineOptions options{.limits = limits,
                          .policy = policy,
                          .vocabulary = device.vocabulary,
                          .speculation = speculation};
    options.time = &clock_;
    return options;
  }

  // One event for all requests that arrive at the same time.
  void add_arrivals() {
    const std::vector<TraceRequest>& requests = trace_.requests;
    for (size_t i = 0; i < requests.size(); ++i) {
      const double arrival = requests[i].arrival_seconds;
      if (i > 0 && requests[i - 1].arrival_seconds == arrival) continue;
      const auto time =
          std::chrono::round<EngineClock::duration>(std::chrono::duration<double>(arrival));
      clock_.at(EngineClock::time_point(time), [this, arrival] { submit_due(arrival); });
    }
  }

  void submit_due(double now) {
    const std::lock_guard lock(mutex_);
    if (!refused_.ok()) return;
    refused_ = hearth::submit_due(engine_, input_, now, streams_);
  }

  // Returns when every request submitted so far has ended, also those submitted meanwhile.
  void wait_for_submitted() {
    while (true) {
      std::optional<TokenStream>* stream = nullptr;
      {
        const std::lock_guard lock(mutex_);
        if (ended_ == streams_.size()) return;
        stream = &streams_[ended_++];
      }
      while (*stream && (*stream)->next()) {
      }
    }
  }

  const Trace trace_;
  const ReplayInput input_;
  VirtualClock clock_;
  ModelledExecutor executor_;
  StepTally tally_;
  std::mutex mutex_;
  ReplayStreams streams_;  // in the trace's order
  size_t ended_ = 0;       // streams that were read to their end
  Status refused_;
  std::optional<RecordCursor> cursor_;
  Engine engine_;  // last: its thread ends before anything that it uses is destroyed
};

}  // namespace

Result<ReplayRun> simulate_replay(const ModelledDevice& device, const SchedulerLimits& limits,
                                  const Policy& policy, const ReplayInput& input,
                                  const SpeculationOptions& speculation) {
  return Simulation(device, limits, policy, input, speculation).run();
}

}  // namespace hearth
