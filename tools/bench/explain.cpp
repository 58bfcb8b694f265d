#include "tools/bench/explain.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "engine/model/step_planner.h"

namespace hearth {
namespace {

StepBucket explained_bucket(uint32_t sequences, uint32_t rows, uint32_t context) {
  StepBucket bucket = choose_bucket(sequences * rows, sequences, rows, sequences);
  bucket.context = bucket_context(context + rows);
  bucket.greedy = true;
  return bucket;
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
  std::vector<StepBucket> buckets;
  if (bench.prompt > 0)
    buckets.push_back(explained_bucket(1, std::min(bench.prompt, limits.rows), 0));
  for (const uint32_t batch : bench.batches)
    buckets.push_back(explained_bucket(batch, 1, bench.context));
  std::vector<StepExplanation> steps;
  for (const StepBucket& bucket : buckets) {
    HEARTH_ASSIGN(auto layers, describe(planner.plan(bucket)));
    steps.push_back({.bucket = bucket, .layers = std::move(layers)});
  }
  return steps;
}

std::string to_text(const StepExplanation& step) {
  return fmt::format("{}\n{}", bucket_text(step.bucket), to_text(step.layers));
}

nlohmann::json to_json(const StepExplanation& step) {
  nlohmann::json layers = nlohmann::json::array();
  for (const LayerDescription& layer : step.layers) {
    nlohmann::json ops = nlohmann::json::array();
    for (const OpDescription& op : layer.ops) {
      nlohmann::json kernels = nlohmann::json::array();
      for (const auto& [pipeline, groups] : op.kernels)
        kernels.push_back({{"kernel", pipeline.kernel},
                           {"constants", pipeline.constants.words()},
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
  const StepBucket& bucket = step.bucket;
  return {{"rows", bucket.rows},
          {"sequences", bucket.sequences},
          {"logit_rows", bucket.logit_rows},
          {"context", bucket.context},
          {"layers", layers}};
}

}  // namespace hearth
