// What the steps of a benchmark would run on a device, from a model's header alone: nothing is
// loaded, compiled or timed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/model/model.h"
#include "engine/program/describe.h"
#include "engine/session.h"
#include "runtime/device_caps.h"
#include "runtime/result.h"
#include "tools/bench/model_bench.h"
#include "tools/bench/step_cost.h"

namespace hearth {

struct StepExplanation {
  StepBucket bucket;
  std::string text;  // step_text()
  bool chained = false;
  std::vector<LayerDescription> layers;
  PartCosts costs;  // of a step with as many tokens as the test has
};

// One step per test of `bench`: a prompt, and a decode step per batch size. `session` as
// bench_session_options() returns it.
Result<std::vector<StepExplanation>> explain_steps(const DeviceCaps& caps, const ModelPlan& model,
                                                   const SessionOptions& session,
                                                   const ModelBenchOptions& bench);

void print(const StepExplanation& step);
nlohmann::json to_json(const StepExplanation& step);

}  // namespace hearth
