// Times decoding with speculation against plain decoding, through the engine, in one run.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "engine/engine.h"
#include "engine/session.h"
#include "runtime/result.h"
#include "tools/bench/decode_window.h"
#include "tools/bench/model_bench.h"

namespace hearth {

struct SpeculationTime {
  uint32_t batch = 1;
  DecodeWindow plain, speculating;

  double speedup() const { return speculating.tokens_per_s() / plain.tokens_per_s(); }
  // Tokens of one sequence per step.
  double tokens_per_step() const;
  // Proposals for one sequence per step.
  double proposed_per_step() const;
  // In all steps: each computes a row, and gives a token, per sequence without any proposal.
  uint64_t proposed() const { return speculating.rows - speculating.steps * batch; }
  uint64_t accepted() const { return speculating.tokens - speculating.steps * batch; }
};

class SpeculationBench {
 public:
  // REQUIRES: the session was opened with bench_session_options(), and its engine() is not used.
  SpeculationBench(Session& session, const ModelBenchOptions& options)
      : session_(session), options_(options) {}

  // `on_run` is called before each run, with its index and the number of runs.
  Result<SpeculationTime> time(uint32_t batch, const ModelBench::OnRun& on_run);

 private:
  Result<DecodeWindow> run(Engine& engine, uint32_t batch);
  Result<DecodeWindow> repeat(Engine& engine, uint32_t batch, const std::function<void()>& on_run);

  Session& session_;
  ModelBenchOptions options_;
};

nlohmann::json to_json(const SpeculationTime& time);
void print_speculation_header();
void print(const SpeculationTime& time);

}  // namespace hearth
