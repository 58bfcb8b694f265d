// Times a model as users run it, through the engine: how fast it reads a prompt, and how fast it
// writes for a number of streams side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/session.h"
#include "engine/step_record.h"
#include "runtime/result.h"
#include "tools/bench/kernel_bench.h"
#include "tools/bench/step_cost.h"

namespace hearth {

struct ModelBenchOptions {
  uint32_t prompt = 512;  // tokens; 0: no such test
  uint32_t tokens = 128;  // that every stream generates; 0: no such test
  uint32_t context = 0;   // tokens that streams have before they are timed
  uint32_t repetitions = 3;
  std::vector<uint32_t> batches = {1, 8, 64};
  std::function<void()> after_run;  // called after each repetition that is timed
};

struct ModelTime {
  std::string test;  // "prompt" or "decode"
  uint32_t batch = 1;
  uint32_t tokens = 0;                  // of a repetition, all streams together
  double tokens_per_s = 0, stddev = 0;  // over the repetitions
  double bytes_per_s = 0, flops_per_s = 0;
  double share = 0;  // of the ceiling that limits it: reads or arithmetic
};

// A session that has room for all the tests.
SessionOptions bench_session_options(SessionOptions options, const ModelBenchOptions& bench);

// The share of what the device can do that is done in `seconds`.
double ceiling_share(const Cost& cost, double seconds, const Ceilings& ceilings);

// A step as the tests have them: `batch` sequences with `rows` tokens each after `position` others.
StepBatch bench_step(uint32_t batch, uint32_t position, uint32_t rows);

class ModelBench {
 public:
  // REQUIRES: the session was opened with bench_session_options().
  ModelBench(Session& session, const ModelBenchOptions& options, const Ceilings& ceilings)
      : session_(session), options_(options), ceilings_(ceilings) {}

  Result<ModelTime> prompt();
  Result<ModelTime> decode(uint32_t batch);

 private:
  Result<double> prompt_seconds();
  // Of the first `tokens` steps in which every stream takes part.
  Result<double> decode_seconds(uint32_t batch, uint32_t tokens);
  GenerationRequest request(uint32_t prompt_tokens, uint32_t max_tokens);
  // Cold pipelines and clocks are no part of what is measured, so `once` is also run before.
  template <class Once>
  Result<ModelTime> repeat(ModelTime time, const Cost& cost, Once once) const;

  Session& session_;
  ModelBenchOptions options_;
  Ceilings ceilings_;
  uint32_t requests_ = 0;
};

// When each of the records' steps was done, in the same seconds.
// REQUIRES: the records follow each other, the first one with no step under way before it.
std::vector<double> done_seconds(std::span<const StepRecord> records);

}  // namespace hearth
