#include "tools/bench/session_tests.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "tools/bench/beam_bench.h"
#include "tools/bench/constrained_bench.h"
#include "tools/bench/reports.h"
#include "tools/bench/search_bench.h"
#include "tools/bench/speculation_bench.h"
#include "tools/bench/step_profile.h"

namespace hearth {

Status SessionTests::time_model(const Ceilings& ceilings) {
  ModelBench bench(session_, options_, ceilings);
  // A test's part of the progress is the time that it would take at the device's ceilings.
  const double prompt_seconds = options_.prompt > 0 ? bench.ideal_prompt_seconds() : 0;
  double all_seconds = prompt_seconds, done_seconds = 0;
  for (const uint32_t batch : options_.batches) all_seconds += bench.ideal_decode_seconds(batch);
  Progress progress = report_.progress();
  const auto time = [&](const std::string& name, double seconds, auto test) -> Status {
    HEARTH_ASSIGN(const ModelTime result, test([&](uint32_t run, uint32_t runs) {
                    constexpr double kParts = 1e6;
                    const double done = done_seconds + seconds * run / runs;
                    progress.update(
                        static_cast<uint64_t>(done / std::max(all_seconds, 1e-12) * kParts),
                        static_cast<uint64_t>(kParts),
                        fmt::format("{}, run {} of {}", name, run + 1, runs));
                  }));
    done_seconds += seconds;
    progress.clear();
    report_.add(result);
    return {};
  };
  if (!report_.is_json()) print_model_header();
  if (options_.prompt > 0)
    HEARTH_TRY(time(fmt::format("prompt of {} tokens", options_.prompt), prompt_seconds,
                    [&](const auto& on_run) { return bench.prompt(on_run); }));
  for (const uint32_t batch : options_.batches)
    HEARTH_TRY(time(fmt::format("decode at batch {}", batch), bench.ideal_decode_seconds(batch),
                    [&](const auto& on_run) { return bench.decode(batch, on_run); }));
  return {};
}

Status SessionTests::time_grammar(const std::shared_ptr<const grammar::Grammar>& grammar) {
  Progress progress = report_.progress();
  if (!report_.is_json()) print_constrained_header();
  for (const uint32_t batch : options_.batches) {
    HEARTH_ASSIGN(
        const ConstrainedTime result,
        time_constrained(session_, options_, batch, grammar, [&](uint32_t run, uint32_t runs) {
          progress.update(run, runs, fmt::format("with the schema at batch {}", batch));
        }));
    progress.clear();
    report_.add(result);
  }
  return {};
}

Status SessionTests::time_speculation() {
  SpeculationBench bench(session_, options_);
  Progress progress = report_.progress();
  if (!report_.is_json()) print_speculation_header();
  for (size_t i = 0; i < options_.batches.size(); ++i) {
    const auto on_run = [&](uint32_t part, uint32_t parts) {
      progress.update(i * parts + part, options_.batches.size() * parts,
                      fmt::format("batch {}, {}", options_.batches[i],
                                  part == 0 ? "plain" : "with speculation"));
    };
    HEARTH_ASSIGN(const SpeculationTime time, bench.time(options_.batches[i], on_run));
    progress.clear();
    report_.add(time);
  }
  return {};
}

Status SessionTests::time_searches(const ContrastiveSearchOptions& search) {
  Progress progress = report_.progress();
  if (!report_.is_json()) print_search_header(search);
  for (const uint32_t batch : options_.batches) {
    HEARTH_ASSIGN(const SearchTime time,
                  time_search(session_, options_, batch, search, [&](uint32_t run, uint32_t runs) {
                    progress.update(run, runs,
                                    fmt::format("contrastive search at batch {}", batch));
                  }));
    progress.clear();
    report_.add(time);
  }
  return {};
}

Status SessionTests::profile_steps(const Ceilings& ceilings) {
  const size_t tests = options_.batches.size() + (options_.prompt > 0 ? 1 : 0);
  Progress progress = report_.progress();
  const auto profile = [&](uint32_t batch, uint32_t position, uint32_t rows) -> Status {
    progress.update(report_.results(), tests,
                    rows > 1 ? fmt::format("prompt step of {} tokens", rows)
                             : fmt::format("decode step at batch {}", batch));
    HEARTH_ASSIGN(const StepProfile result,
                  profile_step(session_, batch, position, rows, ceilings));
    progress.clear();
    report_.add(result);
    return {};
  };
  const uint32_t step_tokens = session_.runner().options().limits.rows;
  if (options_.prompt > 0) HEARTH_TRY(profile(1, 0, std::min(step_tokens, options_.prompt)));
  for (const uint32_t batch : options_.batches) HEARTH_TRY(profile(batch, options_.context, 1));
  return {};
}

Status SessionTests::compare_beams(uint32_t beams) {
  HEARTH_ASSIGN(const BeamTime time, time_beams(session_, options_, beams));
  if (!report_.is_json()) print(time);
  report_.set("beams", time.beams);
  report_.set("beam_tokens_per_s", time.beam_tokens_per_s);
  report_.set("stream_tokens_per_s", time.stream_tokens_per_s);
  report_.set("ratio", time.ratio());
  return {};
}

}  // namespace hearth
