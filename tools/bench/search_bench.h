// Times streams with contrastive search against the same streams that sample, through the engine.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "engine/decoding/contrastive_options.h"
#include "engine/session.h"
#include "runtime/result.h"
#include "tools/bench/decode_window.h"
#include "tools/bench/model_bench.h"

namespace hearth {

struct SearchTime {
  uint32_t batch = 1;
  DecodeWindow sampling, searching;

  double ratio() const { return searching.tokens_per_s() / sampling.tokens_per_s(); }
};

// The session that time_search() needs, given that of the other tests.
SessionOptions search_session_options(SessionOptions options, const ModelBenchOptions& bench,
                                      const ContrastiveSearchOptions& search);

// REQUIRES: the session was opened with search_session_options(), and `bench.batches` has `batch`.
Result<SearchTime> time_search(Session& session, const ModelBenchOptions& bench, uint32_t batch,
                               const ContrastiveSearchOptions& search,
                               const ModelBench::OnRun& on_run);

nlohmann::json to_json(const SearchTime& time);
void print_search_header(const ContrastiveSearchOptions& search);
void print(const SearchTime& time);

}  // namespace hearth
