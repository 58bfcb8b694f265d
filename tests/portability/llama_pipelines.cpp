#include "tests/portability/llama_pipelines.h"

#include <map>
#include <string>

#include "engine/program/describe.h"
#include "tests/engine/program/planned_model.h"

namespace hearth::testing {
namespace {

constexpr uint32_t kContext = 8192, kPrompt = 2048;
// Products of more rows are limited by arithmetic.
constexpr uint32_t kMostMemoryBoundRows = 8;

// The formats of its weights, as in files of that name.
struct LlamaWeights {
  WeightFormat most;    // embedding, q, k, attention output, gate, up and half of the downs
  WeightFormat rest;    // v, and the other half of the downs
  WeightFormat output;  // logits
};

constexpr LlamaWeights kLlamaWeights[] = {
    {WeightFormat::kF16, WeightFormat::kF16, WeightFormat::kF16},
    {WeightFormat::kQ8_0, WeightFormat::kQ8_0, WeightFormat::kQ8_0},
    {WeightFormat::kQ4K, WeightFormat::kQ6K, WeightFormat::kQ6K},
};

MadeModelInfo llama_8b_of(const LlamaWeights& weights) {
  MadeModelInfo info = llama_8b_shape();
  info.own_output = true;
  info.format = [weights](const std::string& tensor) {
    const auto is = [&](const char* part) { return tensor.find(part) != tensor.npos; };
    if (tensor == "output.weight") return weights.output;
    return is("attn_v") || is("blk.0.ffn_down") ? weights.rest : weights.most;
  };
  return info;
}

std::vector<StepBucket> llama_steps() {
  std::vector<StepBucket> steps = {step_of(1, kPrompt, 0)};
  for (const uint32_t sequences : {1u, 8u, 64u})
    for (const uint32_t context : {100u, kContext - 1}) {
      steps.push_back(step_of(sequences, 1, context));
      steps.push_back(steps.back());
      steps.back().greedy = false;
    }
  return steps;
}

bool is_memory_bound(const std::string& kernel, uint32_t rows, const StepBucket& step) {
  if (kernel.starts_with("matmul") || kernel.starts_with("matvec"))
    return rows <= kMostMemoryBoundRows;
  if (kernel.starts_with("attention")) return step.sequence_rows <= 1;
  return !kernel.starts_with("sample");
}

}  // namespace

Result<std::vector<NeededPipeline>> llama_pipelines(const DeviceCaps& caps) {
  std::map<PipelineInfo, bool> bound;
  for (const LlamaWeights& weights : kLlamaWeights) {
    HEARTH_ASSIGN(const auto model, PlannedModel::create(llama_8b_of(weights)));
    for (const StepBucket& step : llama_steps())
      for (const bool fusion : {true, false}) {
        HEARTH_ASSIGN(const auto layers, describe(model->plan(caps, step, fusion)));
        for (const LayerDescription& layer : layers)
          for (const OpDescription& op : layer.ops)
            for (const LoggedDispatch& dispatch : op.kernels)
              bound[dispatch.pipeline] |= is_memory_bound(dispatch.pipeline.kernel, op.rows, step);
      }
  }
  std::vector<NeededPipeline> all;
  for (const auto& [info, memory_bound] : bound) all.push_back({info, memory_bound});
  return all;
}

}  // namespace hearth::testing
