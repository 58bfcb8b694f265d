#include "tools/bench/rank_bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace hearth {
namespace {

std::string rank_test_name(const ModelBenchOptions& options, size_t test) {
  if (options.prompt > 0 && test-- == 0) return fmt::format("prompt of {} tokens", options.prompt);
  return fmt::format("decode at batch {}", options.batches[test]);
}

size_t rank_tests(const ModelBenchOptions& options) {
  return options.batches.size() + (options.prompt > 0 ? 1 : 0);
}

Result<ModelTime> run_rank_test(Session& session, const ModelBenchOptions& options, size_t test,
                                const ModelBench::OnRun& on_run) {
  // Each rank has ceilings of its own, and its own share of the work.
  ModelBench bench(session, options, Ceilings{});
  if (options.prompt > 0 && test-- == 0) return bench.prompt(on_run);
  return bench.decode(options.batches[test], on_run);
}

}  // namespace

double RankBenchTime::boundary_seconds() const {
  double sum = 0;
  for (const RankTimes& rank : ranks)
    sum += (rank.arrival_seconds + rank.submit_seconds) /
           static_cast<double>(std::max<uint64_t>(1, rank.steps));
  return sum;
}

double RankBenchTime::device_seconds() const {
  double sum = 0;
  for (const RankTimes& rank : ranks)
    sum += rank.device_seconds / static_cast<double>(std::max<uint64_t>(1, rank.steps));
  return sum;
}

Result<std::vector<ModelTime>> bench_alone(Session& session, const ModelBenchOptions& options,
                                           const RankBenchRun& on_run) {
  std::vector<ModelTime> times;
  for (size_t test = 0; test < rank_tests(options); ++test) {
    const std::string name = rank_test_name(options, test) + ", one device";
    HEARTH_ASSIGN(times.emplace_back(),
                  run_rank_test(session, options, test,
                                [&](uint32_t run, uint32_t runs) { on_run(name, run, runs); }));
  }
  return times;
}

Result<std::vector<RankBenchTime>> bench_ranks(Session& session, const ModelBenchOptions& options,
                                               const RankBenchRun& on_run) {
  RankExecutor& executor = session.ranks()->executor();
  std::vector<RankBenchTime> times;
  for (size_t test = 0; test < rank_tests(options); ++test) {
    const std::string name = rank_test_name(options, test);
    Status reset;
    RankBenchTime& time = times.emplace_back();
    HEARTH_ASSIGN(time.time,
                  run_rank_test(session, options, test, [&](uint32_t run, uint32_t runs) {
                    on_run(name, run, runs);
                    // What ranks did to warm up does not count.
                    if (run == 1)
                      if (const auto before = executor.times(); !before.ok())
                        reset = before.error();
                  }));
    HEARTH_TRY(reset);
    HEARTH_ASSIGN(time.ranks, executor.times());
  }
  return times;
}

void print_ranks_header() {
  fmt::print("{:<8} {:>6} {:>10} {:>9} {:>10} {:>8} {:>11} {:>10}  {}\n", "test", "batch",
             "tokens/s", "ms/step", "one device", "ratio", "boundary us", "devices ms",
             "per step and rank: inputs arrive us + submit us, device ms");
}

std::string describe_rows(const std::vector<RankBenchTime>& times) {
  uint64_t steps = 0, shared = 0;
  for (const RankBenchTime& time : times)
    for (size_t rank = 1; rank < time.ranks.size(); ++rank) {
      steps += time.ranks[rank].steps;
      shared += time.ranks[rank].shared_steps;
    }
  if (shared == 0) return "hidden rows were copied into messages";
  if (shared == steps) return "hidden rows stayed in host memory that the devices share";
  return fmt::format("hidden rows of {} of {} steps were copied into messages", steps - shared,
                     steps);
}

void print(const RankBenchTime& time) {
  std::string ranks;
  for (const RankTimes& rank : time.ranks) {
    const auto steps = static_cast<double>(std::max<uint64_t>(1, rank.steps));
    ranks += fmt::format("{}{:.0f} + {:.0f}, {:.3f}", ranks.empty() ? "" : " | ",
                         rank.arrival_seconds / steps * 1e6, rank.submit_seconds / steps * 1e6,
                         rank.device_seconds / steps * 1e3);
  }
  fmt::print("{:<8} {:>6} {:>10.1f} {:>9.3f} {:>10} {:>8} {:>11.0f} {:>10.3f}  {}\n",
             time.time.test, time.time.batch, time.time.tokens_per_s, time.time.ms_per_step(),
             time.alone ? fmt::format("{:.3f}", time.alone->ms_per_step()) : "-",
             time.alone ? fmt::format("{:.1f} %", time.ratio() * 100) : "-",
             time.boundary_seconds() * 1e6, time.device_seconds() * 1e3, ranks);
}

nlohmann::json to_json(const RankBenchTime& time) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const RankTimes& rank : time.ranks)
    ranks.push_back({{"steps", rank.steps},
                     {"shared_steps", rank.shared_steps},
                     {"arrival_seconds", rank.arrival_seconds},
                     {"submit_seconds", rank.submit_seconds},
                     {"device_seconds", rank.device_seconds}});
  nlohmann::json json = {{"test", time.time.test},
                         {"batch", time.time.batch},
                         {"tokens", time.time.tokens},
                         {"tokens_per_s", time.time.tokens_per_s},
                         {"stddev", time.time.stddev},
                         {"ms_per_step", time.time.ms_per_step()},
                         {"boundary_seconds", time.boundary_seconds()},
                         {"device_seconds", time.device_seconds()},
                         {"ranks", ranks}};
  if (time.alone) {
    json["alone_tokens_per_s"] = time.alone->tokens_per_s;
    json["alone_ms_per_step"] = time.alone->ms_per_step();
    json["ratio"] = time.ratio();
  }
  return json;
}

}  // namespace hearth
