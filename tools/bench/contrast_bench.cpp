#include "tools/bench/contrast_bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include <fmt/format.h>

namespace hearth {
namespace {

std::vector<GenerationRequest> greedy_requests(const Session& session,
                                               const ModelBenchOptions& bench, uint32_t batch) {
  std::mt19937 random(batch);
  std::uniform_int_distribution<uint32_t> id(0, session.model().config().vocabulary - 1);
  std::vector<GenerationRequest> requests(batch);
  for (GenerationRequest& request : requests) {
    request.max_tokens = bench.tokens;
    request.ignore_end = true;
    request.sampling.temperature = 0;
    request.prompt.resize(std::max(1u, bench.context));
    for (TokenId& token : request.prompt) token = id(random);
  }
  return requests;
}

}  // namespace

Result<std::vector<DecodeWindow>> time_streams(Session& session, const ModelBenchOptions& bench,
                                               const ModelBench::OnRun& on_run) {
  std::vector<DecodeWindow> windows(bench.batches.size());
  const uint32_t runs = bench.repetitions + 1;
  for (uint32_t i = 0; i < windows.size(); ++i)
    for (uint32_t run = 0; run < runs; ++run) {
      on_run(i * runs + run, static_cast<uint32_t>(windows.size()) * runs);
      HEARTH_ASSIGN(
          const DecodeWindow window,
          decode_together(session.engine(), greedy_requests(session, bench, bench.batches[i])));
      if (run > 0) windows[i] += window;  // kernels are compiled in the first
    }
  return windows;
}

nlohmann::json to_json(const ContrastTime& time) {
  return {{"test", "contrastive decoding"},
          {"batch", time.batch},
          {"tokens_per_s", time.contrastive.tokens_per_s()},
          {"step_ms", time.contrastive.step_ms()},
          {"expert_step_ms", time.expert.step_ms()},
          {"amateur_step_ms", time.amateur.step_ms()},
          {"extra", time.extra()}};
}

void print_contrast_header() {
  fmt::print(
      "contrastive decoding and its two models alone, in ms per step\n"
      "extra: how much longer than one step of each, in % of the expert's step\n"
      "{:>6} {:>12} {:>12} {:>10} {:>10} {:>8}\n",
      "batch", "tokens/s", "contrastive", "expert", "amateur", "extra");
}

void print(const ContrastTime& time) {
  fmt::print("{:>6} {:>12.1f} {:>12.3f} {:>10.3f} {:>10.3f} {:>7.1f}%\n", time.batch,
             time.contrastive.tokens_per_s(), time.contrastive.step_ms(), time.expert.step_ms(),
             time.amateur.step_ms(), 100 * time.extra());
}

}  // namespace hearth
