// Times streams with a grammar against the same streams without one, through the engine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "engine/grammar/grammar.h"
#include "engine/session.h"
#include "runtime/result.h"
#include "tools/bench/model_bench.h"

namespace hearth {

struct ConstrainedTime {
  uint32_t batch = 1;
  uint32_t tokens = 0;  // that each sequence generates
  // Of all sequences together, averages over the repetitions.
  double tokens_per_s = 0, free_tokens_per_s = 0;
  double forced_share = 0;  // of the generated tokens, those that were not sampled
  double steps_share = 0;   // steps with the grammar, compared with those without it

  double ratio() const { return tokens_per_s / free_tokens_per_s; }
};

// A grammar of compact JSON texts for the schema, one after the other without end: models with
// random weights have to continue to any length.
Result<std::shared_ptr<const grammar::Grammar>> compile_endless(std::string_view schema);

// REQUIRES: the session was opened with bench_session_options(), and `bench.batches` has `batch`.
Result<ConstrainedTime> time_constrained(Session& session, const ModelBenchOptions& bench,
                                         uint32_t batch,
                                         const std::shared_ptr<const grammar::Grammar>& grammar,
                                         const ModelBench::OnRun& on_run);

nlohmann::json to_json(const ConstrainedTime& time);
void print_constrained_header();
void print(const ConstrainedTime& time);

}  // namespace hearth
