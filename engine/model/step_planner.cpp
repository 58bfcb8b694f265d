#include "engine/model/step_planner.h"

#include <numeric>
#include <set>
#include <utility>

#include "engine/model/step_inputs.h"
#include "engine/program/fuse.h"
#include "engine/program/step_program.h"

namespace hearth {
namespace {

// What makes two layers use the same pipelines.
std::vector<uint32_t> layer_signature(const ModelPlan& model, uint32_t layer) {
  const ModelConfig& config = model.config;
  std::vector<uint32_t> signature{config.layer_window(layer), config.layer_is_windowed(layer)};
  for (auto role = static_cast<size_t>(kFirstLayerRole); role < kWeightRoles; ++role) {
    const WeightShape& weight = model.shapes.get({static_cast<WeightRole>(role), layer});
    signature.push_back(static_cast<uint32_t>(weight.size()));
    for (const SegmentShape& segment : weight)
      signature.insert(signature.end(),
                       {static_cast<uint32_t>(segment.format), segment.rows, segment.cols});
  }
  return signature;
}

std::vector<Op> ops_of(const ModelPlan& model, const StepBucket& bucket,
                       std::span<const uint32_t> layers, bool divides_rows = false) {
  return step_program(
      {.config = model.config,
       .weights = model.shapes,
       .bucket = bucket,
       .layers = layers,
       .emit_layer = [&](Builder& builder) { model.architecture->emit_layer(builder); },
       .divides_rows = divides_rows});
}

}  // namespace

std::vector<Op> step_ops(const ModelPlan& model, const StepBucket& bucket) {
  std::vector<uint32_t> layers(model.config.end_layer() - model.config.first_layer());
  std::iota(layers.begin(), layers.end(), model.config.first_layer());
  return ops_of(model, bucket, layers);
}

StepPlanner::StepPlanner(const StepPlannerInfo& info)
    : info_(info), windows_(attention_windows(info.model.config)) {
  find_distinct_layers();
}

// A layer's pipelines also depend on the layer before it, whose partial sums it may add up. The
// first and the last layer differ from the others.
void StepPlanner::find_distinct_layers() {
  const uint32_t first = info_.model.config.first_layer();
  const uint32_t end = info_.model.config.end_layer();
  std::vector<std::vector<uint32_t>> signatures;
  std::set<std::pair<std::vector<uint32_t>, std::vector<uint32_t>>> seen;
  for (uint32_t layer = first; layer < end; ++layer) {
    layers_.push_back(layer);
    signatures.push_back(layer_signature(info_.model, layer));
    const bool ends = layer == first || layer + 1 == end;
    const size_t i = layer - first;
    if (i > 0 && !seen.emplace(signatures[i - 1], signatures[i]).second && !ends) continue;
    if (i > 0 && distinct_layers_.back() != layer - 1) distinct_layers_.push_back(layer - 1);
    distinct_layers_.push_back(layer);
  }
}

StepPlan StepPlanner::plan(const StepBucket& bucket, std::span<const uint32_t> layers) const {
  const ModelPlan& model = info_.model;
  const StepLimits& limits = info_.limits;
  StepPlan plan = fuse(
      {.caps = info_.caps,
       .weights = model.shapes,
       .bucket = bucket,
       .attention = step_attention_shape(model.config, limits.kv, bucket, limits.context),
       .windows = windows_,
       .vocabulary = model.config.vocabulary,
       .matmul_scratch_bytes = info_.matmul_scratch_bytes,
       .meets_ranks = model.config.meets_ranks(),
       .deterministic = limits.deterministic,
       .fusion = info_.fusion},
      ops_of(model, bucket, layers, limits.divided_rows > 0 && bucket.rows >= limits.divided_rows));
  if (info_.edit) info_.edit(plan);
  return plan;
}

}  // namespace hearth
