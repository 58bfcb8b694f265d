// Times a model as users run it, through the engine: how fast it processes a prompt, and how fast
// it decodes for a batch of sequences.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/session.h"
#include "engine/step_record.h"
#include "runtime/result.h"
#include "tools/bench/kernel_bench.h"
#include "tools/bench/step_cost.h"

namespace hearth {

struct ModelBenchOptions {
  uint32_t prompt = 512;  // tokens of the prompt; 0: no prompt test
  uint32_t tokens = 128;  // that each sequence generates; 0: no decode tests
  uint32_t context = 0;   // tokens each sequence has before timing starts
  uint32_t repetitions = 3;
  std::vector<uint32_t> batches = {1, 8, 64};
};

struct ModelTime {
  std::string test;  // "prompt" or "decode"
  uint32_t batch = 1;
  uint32_t tokens = 0;                  // of one repetition, over all sequences
  uint32_t steps = 0;                   // of one repetition
  double seconds = 0;                   // of one repetition, on average
  double tokens_per_s = 0, stddev = 0;  // over the repetitions
  double bytes_per_s = 0, flops_per_s = 0;
  CeilingShare ceiling;

  // A step of a batch makes one token for each sequence, so the time per step is also the time
  // between two tokens of one sequence.
  double ms_per_token() const { return seconds * 1e3 / tokens; }
  double ms_per_step() const { return seconds * 1e3 / steps; }
};

// Options for a session with room for all the tests.
SessionOptions bench_session_options(SessionOptions options, const ModelBenchOptions& bench);

// How close to the device's ceilings a step or a part of it came. Arithmetic is compared with the
// matrix units if the device has them.
CeilingShare ceiling_share(const Cost& cost, double seconds, const Ceilings& ceilings);

// A step as the tests run it: `batch` sequences with `rows` tokens each, after `position` others.
StepBatch bench_step(uint32_t batch, uint32_t position, uint32_t rows);

class ModelBench {
 public:
  // REQUIRES: the session was opened with bench_session_options().
  ModelBench(Session& session, const ModelBenchOptions& options, const Ceilings& ceilings)
      : session_(session), options_(options), ceilings_(ceilings) {}

  // Called before each run of a test, with its index and the number of runs. The first run warms
  // up and may be called for several times.
  using OnRun = std::function<void(uint32_t run, uint32_t runs)>;
  Result<ModelTime> prompt(const OnRun& on_run);
  Result<ModelTime> decode(uint32_t batch, const OnRun& on_run);

  // The time of one run on a device that reaches its ceilings: what tests take relative to each
  // other, before they are run.
  double ideal_prompt_seconds() const;
  double ideal_decode_seconds(uint32_t batch) const;

 private:
  uint32_t step_tokens() const { return session_.engine_options().limits.max_step_tokens; }
  Cost prompt_cost() const;
  Cost decode_cost(uint32_t batch) const;
  Result<double> prompt_seconds();
  // The time of the first `tokens` steps in a row in which every sequence decodes.
  Result<double> decode_seconds(uint32_t batch, uint32_t tokens);
  GenerationRequest request(uint32_t prompt_tokens, uint32_t max_tokens);
  // Runs `once` to warm up, then for every repetition.
  template <class Once>
  Result<ModelTime> repeat(ModelTime time, const Cost& cost, const OnRun& on_run, Once once) const;

  Session& session_;
  ModelBenchOptions options_;
  Ceilings ceilings_;
  uint32_t requests_ = 0;
};

// When each step was done, in the same seconds as the records.
// REQUIRES: the records are consecutive, and no other step was in flight before the first one.
std::vector<double> done_seconds(std::span<const StepRecord> records);

}  // namespace hearth
