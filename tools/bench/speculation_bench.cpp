#include "tools/bench/speculation_bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include <fmt/format.h>

namespace hearth {
double SpeculationTime::tokens_per_step() const {
  return speculating.steps == 0 ? 0
                                : static_cast<double>(speculating.tokens) /
                                      static_cast<double>(speculating.steps) / batch;
}

double SpeculationTime::proposed_per_step() const {
  if (speculating.steps == 0) return 0;
  return static_cast<double>(speculating.rows) / static_cast<double>(speculating.steps) / batch - 1;
}

Result<DecodeWindow> SpeculationBench::run(Engine& engine, uint32_t batch) {
  std::mt19937 random(batch);
  std::uniform_int_distribution<uint32_t> id(0, session_.model().config().vocabulary - 1);
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < batch; ++i) {
    GenerationRequest request{.max_tokens = options_.tokens, .ignore_end = true};
    request.sampling.temperature = 0;
    request.prompt.resize(std::max(1u, options_.context));
    for (TokenId& token : request.prompt) token = id(random);
    requests.push_back(std::move(request));
  }
  return decode_together(engine, std::move(requests));
}

Result<DecodeWindow> SpeculationBench::repeat(Engine& engine, uint32_t batch,
                                              const std::function<void()>& on_run) {
  // Steps of new sizes are recorded when they come up first, and lengths are learnt from measured
  // steps: neither is part of the result.
  constexpr double kWarmUpSeconds = 0.5;
  constexpr uint32_t kLeastWarmUps = 2, kMostWarmUps = 64;
  const bool cpu = is_cpu(session_.device().caps());
  double warm = 0;
  for (uint32_t i = 0; i < kMostWarmUps && (i < kLeastWarmUps || (!cpu && warm < kWarmUpSeconds));
       ++i) {
    on_run();
    HEARTH_ASSIGN(const DecodeWindow window, run(engine, batch));
    if (i > 0) warm += window.seconds;
  }
  // A size may need kernels that have to be compiled when it comes up for the first time. A run in
  // which that happened is repeated; after so many times it counts, so that this ends.
  constexpr uint32_t kMostRepeats = 8;
  DecodeWindow sum;
  for (uint32_t done = 0, repeats = 0; done < options_.repetitions;) {
    on_run();
    const size_t kernels = session_.pipelines().size();
    HEARTH_ASSIGN(const DecodeWindow window, run(engine, batch));
    if (session_.pipelines().size() > kernels && repeats++ < kMostRepeats) continue;
    sum += window;
    ++done;
  }
  return sum;
}

Result<SpeculationTime> SpeculationBench::time(uint32_t batch, const ModelBench::OnRun& on_run) {
  SpeculationTime time{.batch = batch};
  EngineOptions plain = session_.engine_options();
  plain.speculation = {};
  {
    Engine engine(session_.runner(), nullptr, plain);
    HEARTH_ASSIGN(time.plain, repeat(engine, batch, [&] { on_run(0, 2); }));
  }
  Engine engine(session_.runner(), nullptr, session_.engine_options());
  HEARTH_ASSIGN(time.speculating, repeat(engine, batch, [&] { on_run(1, 2); }));
  return time;
}

namespace {

// What the choice of a length is made from: how often steps of each size were run, and their median
// time.
nlohmann::json rows_json(const StepsByRows& steps) {
  nlohmann::json list = nlohmann::json::array();
  for (auto [rows, times] : steps) {
    std::ranges::sort(times);
    list.push_back({{"rows", rows}, {"steps", times.size()}, {"seconds", times[times.size() / 2]}});
  }
  return list;
}

}  // namespace

nlohmann::json to_json(const SpeculationTime& time) {
  return {{"test", "speculation"},
          {"batch", time.batch},
          {"plain_tokens_per_s", time.plain.tokens_per_s()},
          {"tokens_per_s", time.speculating.tokens_per_s()},
          {"speedup", time.speedup()},
          {"tokens_per_step", time.tokens_per_step()},
          {"proposed_per_step", time.proposed_per_step()},
          {"proposed_tokens", time.proposed()},
          {"accepted_tokens", time.accepted()},
          {"host_ms_per_step", time.speculating.host_ms_per_step()},
          {"plain_steps_by_rows", rows_json(time.plain.steps_by_rows)},
          {"steps_by_rows", rows_json(time.speculating.steps_by_rows)}};
}

void print_speculation_header() {
  fmt::print("columns per step count one sequence\n");
  fmt::print("{:>6} {:>15} {:>12} {:>9} {:>13} {:>15} {:>10}\n", "batch", "plain tokens/s",
             "tokens/s", "speed-up", "tokens/step", "proposed/step", "accepted");
}

void print(const SpeculationTime& time) {
  const double share = time.proposed() == 0 ? 0
                                            : static_cast<double>(time.accepted()) /
                                                  static_cast<double>(time.proposed());
  fmt::print("{:>6} {:>15.1f} {:>12.1f} {:>8.2f}x {:>13.2f} {:>15.2f} {:>9.1f}%\n", time.batch,
             time.plain.tokens_per_s(), time.speculating.tokens_per_s(), time.speedup(),
             time.tokens_per_step(), time.proposed_per_step(), share * 100);
}

}  // namespace hearth
