#include "tools/bench/explain.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "engine/model/step_planner.h"

namespace hearth {
namespace {

// A step of `sequences` with `rows` rows each, after `context` tokens.
struct ExplainedStep {
  uint32_t sequences, rows, context;

  StepBucket bucket() const {
    StepBucket bucket = choose_bucket(sequences * rows, sequences, rows, sequences);
    bucket.context = bucket_context(context + rows);
    bucket.greedy = true;
    return bucket;
  }
};

nlohmann::json to_json(const KernelConstants& constants) {
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [name, word, is_float] : constants.named())
    values[name] = is_float ? nlohmann::json(std::bit_cast<float>(word)) : nlohmann::json(word);
  return values;
}

// Part by part: what a device must move and compute at the least.
std::string costs_text(const PartCosts& costs) {
  std::string text = "at the least\n";
  OpCost sum;
  const auto line = [](std::string_view part, const OpCost& cost) {
    return fmt::format(
        "  {:<14} {:>10.3f} MB of weights and KV, {:>9.3f} MB of rows, {:>10.3f} GFLOP\n", part,
        cost.memory_bytes * 1e-6, cost.activation_bytes * 1e-6, cost.operations * 1e-9);
  };
  for (const auto& [part, cost] : costs) {
    text += line(part, cost);
    sum += cost;
  }
  return text + line("all", sum);
}

}  // namespace

Result<std::vector<StepExplanation>> explain_steps(const DeviceCaps& caps, const ModelPlan& model,
                                                   const SessionOptions& session,
                                                   const ModelBenchOptions& bench) {
  StepLimits limits = step_limits(session, caps, model.config.context);
  limits.context =
      std::min(limits.context == 0 ? model.config.context : limits.context, model.config.context);
  const ActivationSizes sizes = activation_sizes(caps, model.config, model.matmuls, limits);
  const StepPlanner planner({.caps = caps,
                             .model = model,
                             .limits = limits,
                             .matmul_scratch_bytes = sizes.matmul_scratch});
  std::vector<ExplainedStep> steps;
  if (bench.prompt > 0) steps.push_back({1, std::min(bench.prompt, limits.rows), 0});
  for (const uint32_t batch : bench.batches) steps.push_back({batch, 1, bench.context});
  std::vector<StepExplanation> explanations;
  for (const ExplainedStep& step : steps) {
    const StepBucket bucket = step.bucket();
    const StepPlan plan = planner.plan(bucket);
    HEARTH_ASSIGN(auto layers, describe(plan));
    explanations.push_back(
        {.bucket = bucket,
         .text = step_text(plan),
         .chained = plan.chained,
         .layers = std::move(layers),
         .costs =
             step_costs(model, limits.kv, bench_step(step.sequences, step.context, step.rows))});
  }
  return explanations;
}

void print(const StepExplanation& step) {
  fmt::print("{}\n{}{}\n", step.text, to_text(step.layers), costs_text(step.costs));
}

nlohmann::json to_json(const StepExplanation& step) {
  nlohmann::json layers = nlohmann::json::array();
  for (const LayerDescription& layer : step.layers) {
    nlohmann::json ops = nlohmann::json::array();
    for (const OpDescription& op : layer.ops) {
      nlohmann::json kernels = nlohmann::json::array();
      for (const auto& [pipeline, groups] : op.kernels)
        kernels.push_back({{"kernel", pipeline.kernel},
                           {"constants", to_json(pipeline.constants)},
                           {"subgroup", pipeline.subgroup_size},
                           {"groups", {groups.x, groups.y, groups.z}}});
      ops.push_back({{"part", op.part}, {"formula", op.formula}, {"kernels", kernels}});
    }
    nlohmann::json entry{{"ops", ops}};
    if (layer.first_layer) {
      entry["first_layer"] = *layer.first_layer;
      entry["last_layer"] = layer.last_layer;
    }
    layers.push_back(std::move(entry));
  }
  nlohmann::json costs = nlohmann::json::object();
  for (const auto& [part, cost] : step.costs)
    costs[std::string(part)] = {{"memory_bytes", cost.memory_bytes},
                                {"activation_bytes", cost.activation_bytes},
                                {"operations", cost.operations}};
  const StepBucket& bucket = step.bucket;
  return {{"rows", bucket.rows},
          {"sequences", bucket.sequences},
          {"logit_rows", bucket.logit_rows},
          {"context", bucket.context},
          {"chained", step.chained},
          {"layers", layers},
          {"costs", costs}};
}

}  // namespace hearth
