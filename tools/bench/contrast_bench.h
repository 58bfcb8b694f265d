// Compares contrastive decoding with its two models, each decoding alone. A step of contrastive
// decoding computes a step of each model, so it should take as long as one step of each alone.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/session.h"
#include "runtime/result.h"
#include "tools/bench/decode_window.h"
#include "tools/bench/model_bench.h"

namespace hearth {

struct ContrastTime {
  uint32_t batch = 1;
  DecodeWindow expert, amateur, contrastive;

  // The time of a step beyond that of one step of each model alone, as a share of the expert's
  // step.
  double extra() const {
    return (contrastive.step_ms() - amateur.step_ms()) / expert.step_ms() - 1;
  }
};

// Greedy streams of a session, with its amateur if it has one: a window for each of the batch
// sizes. REQUIRES: the session was opened with bench_session_options().
Result<std::vector<DecodeWindow>> time_streams(Session& session, const ModelBenchOptions& bench,
                                               const ModelBench::OnRun& on_run);

nlohmann::json to_json(const ContrastTime& time);
void print_contrast_header();
void print(const ContrastTime& time);

}  // namespace hearth
