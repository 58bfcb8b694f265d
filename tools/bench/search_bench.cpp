#include "tools/bench/search_bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include <fmt/format.h>

namespace hearth {
namespace {

Result<DecodeWindow> run_streams(Session& session, const ModelBenchOptions& bench, uint32_t batch,
                                 const ContrastiveSearchOptions& search, bool searches) {
  std::mt19937 random(batch);
  std::uniform_int_distribution<uint32_t> id(0, session.model().config().vocabulary - 1);
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < batch; ++i) {
    GenerationRequest request{.max_tokens = bench.tokens, .ignore_end = true};
    request.sampling.top_k = search.top_k;
    request.sampling.seed = i;
    if (searches) request.contrastive_search = search;
    request.prompt.resize(std::max(1u, bench.context));
    for (TokenId& token : request.prompt) token = id(random);
    requests.push_back(std::move(request));
  }
  return decode_together(session.engine(), std::move(requests));
}

}  // namespace

SessionOptions search_session_options(SessionOptions options, const ModelBenchOptions& bench,
                                      const ContrastiveSearchOptions& search) {
  uint32_t most = 1;
  for (const uint32_t batch : bench.batches) most = std::max(most, batch);
  options.context += search.top_k;
  options.kv_blocks += (1 + search.top_k) * most;  // each candidate has a block of its own
  options.candidate_rows = most * search.top_k;
  return options;
}

Result<SearchTime> time_search(Session& session, const ModelBenchOptions& bench, uint32_t batch,
                               const ContrastiveSearchOptions& search,
                               const ModelBench::OnRun& on_run) {
  SearchTime time{.batch = batch};
  for (uint32_t run = 0; run <= bench.repetitions; ++run) {
    on_run(run, bench.repetitions + 1);
    HEARTH_ASSIGN(const DecodeWindow sampling, run_streams(session, bench, batch, search, false));
    HEARTH_ASSIGN(const DecodeWindow searching, run_streams(session, bench, batch, search, true));
    if (run == 0) continue;  // kernels are compiled in it
    time.sampling += sampling;
    time.searching += searching;
  }
  return time;
}

nlohmann::json to_json(const SearchTime& time) {
  return {{"test", "contrastive search"},
          {"batch", time.batch},
          {"sampling_tokens_per_s", time.sampling.tokens_per_s()},
          {"tokens_per_s", time.searching.tokens_per_s()},
          {"ratio", time.ratio()},
          {"sampling_step_ms", time.sampling.step_ms()},
          {"step_ms", time.searching.step_ms()},
          {"host_ms_per_step", time.searching.host_ms_per_step()},
          {"rows_per_step", time.searching.per_step(static_cast<double>(time.searching.rows))}};
}

void print_search_header(const ContrastiveSearchOptions& search) {
  fmt::print(
      "contrastive search with {} candidates\n{:>6} {:>18} {:>12} {:>7} {:>16} {:>8} {:>8}\n",
      search.top_k, "batch", "sampling tokens/s", "tokens/s", "ratio", "sampling step ms",
      "step ms", "of host");
}

void print(const SearchTime& time) {
  fmt::print("{:>6} {:>18.1f} {:>12.1f} {:>7.3f} {:>16.3f} {:>8.3f} {:>8.3f}\n", time.batch,
             time.sampling.tokens_per_s(), time.searching.tokens_per_s(), time.ratio(),
             time.sampling.step_ms(), time.searching.step_ms(), time.searching.host_ms_per_step());
}

}  // namespace hearth
