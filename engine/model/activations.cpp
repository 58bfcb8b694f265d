#include "engine/model/activations.h"

#include <algorithm>
#include <bit>
#include <set>

#include "engine/ops/attention.h"
#include "engine/ops/experts.h"
#include "engine/ops/sampling.h"
#include "runtime/command_recorder.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/queue.h"

namespace hearth {
namespace {

void add_matmuls(const DeviceCaps& caps, std::span<const ModelMatmul> matmuls,
                 const StepLimits& limits, ActivationSizes& sizes) {
  const auto most_rows = [&](const ModelMatmul& matmul) {
    return matmul.of_logits ? std::bit_ceil(limits.logit_rows) : limits.rows;
  };
  for (const ModelMatmul& matmul : matmuls) {
    if (matmul.experts > 0) continue;
    for_bucket_sizes(most_rows(matmul), [&](uint32_t rows) {
      const MatmulShape shape{.format = matmul.format,
                              .rows = rows,
                              .inputs = matmul.inputs,
                              .outputs = matmul.outputs,
                              .sibling_outputs = matmul.sibling_outputs};
      const MatmulPlan plan = choose_matmul(caps, shape, limits.deterministic);
      sizes.matmul_scratch = std::max(sizes.matmul_scratch, plan.scratch_bytes);
      if (plan.can_share_norm)
        sizes.norm_state = std::max(sizes.norm_state, norm_state_bytes(plan.multiply.groups.y));
      if (plan.shared)
        sizes.matmul_counts = std::max(sizes.matmul_counts, plan.shared->count_bytes);
    });
  }
}

// Layers may combine any two of the formats.
void add_experts(const DeviceCaps& caps, const ModelConfig& config,
                 std::span<const ModelMatmul> matmuls, const StepLimits& limits,
                 ActivationSizes& sizes) {
  const auto is_gate_up = [&](const ModelMatmul& matmul) {
    return matmul.outputs == 2 * config.mlp_width && matmul.inputs == config.width;
  };
  for (const ModelMatmul& gate_up : matmuls)
    for (const ModelMatmul& down : matmuls) {
      if (gate_up.experts == 0 || down.experts == 0 || !is_gate_up(gate_up) || is_gate_up(down))
        continue;
      for_bucket_sizes(limits.rows, [&](uint32_t rows) {
        const ExpertsShape shape{.gate_up = gate_up.format,
                                 .down = down.format,
                                 .rows = rows,
                                 .experts = config.experts,
                                 .used = config.used_experts,
                                 .width = config.width,
                                 .mlp_width = config.mlp_width};
        sizes.matmul_scratch = std::max(
            sizes.matmul_scratch, choose_experts(caps, shape, limits.deterministic).scratch_bytes);
      });
    }
}

void add_attention(const DeviceCaps& caps, const ModelConfig& config, const StepLimits& limits,
                   ActivationSizes& sizes) {
  for_step_buckets(limits, [&](const StepBucket& bucket) {
    const AttentionShape shape = step_attention_shape(config, limits.kv, bucket, limits.context);
    const AttentionPlan plan = choose_attention(caps, shape, limits.deterministic);
    sizes.attention_partials =
        std::max(sizes.attention_partials, attention_partial_bytes(plan.capacity, shape));
    sizes.attention_counts =
        std::max(sizes.attention_counts, attention_count_bytes(plan.capacity, shape));
    if (shape.dealt)
      sizes.attention_sums =
          std::max(sizes.attention_sums, attention_result_bytes(shape, RowForm::kFloats));
  });
  sizes.attention_counts = round_up(sizes.attention_counts, 16);
}

}  // namespace

AttentionShape step_attention_shape(const ModelConfig& config, KvFormat kv,
                                    const StepBucket& bucket, uint32_t context) {
  return {.kv = kv,
          .heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_size = config.head_size,
          .f32_only = config.f32_attention,
          .sinks = config.attention_sinks,
          .dealt = config.deal.is_divided(),
          .bucket = {.rows = bucket.rows,
                     .sequences = bucket.sequences,
                     .sequence_rows = bucket.sequence_rows,
                     .sequence_tokens = std::min(context, bucket.context),
                     .trees = bucket.trees}};
}

std::vector<ModelMatmul> model_matmuls(const WeightTable& table, const ModelFile& file) {
  std::set<ModelMatmul> matmuls;
  for (const WeightSpec& spec : table.specs()) {
    if (spec.is_vector) continue;
    const std::vector<SegmentPlan> segments = plan_segments(spec, file);
    uint64_t outputs = 0;
    for (const SegmentPlan& segment : segments) outputs += segment.matrix_rows();
    // A tied embedding is also the output matrix.
    for (const SegmentPlan& segment : segments)
      matmuls.insert({.format = segment.format,
                      .inputs = static_cast<uint32_t>(segment.cols),
                      .outputs = static_cast<uint32_t>(segment.matrix_rows()),
                      .sibling_outputs = static_cast<uint32_t>(outputs - segment.matrix_rows()),
                      .of_logits = spec.role < kFirstLayerRole,
                      .experts = segment.experts});
  }
  return {matmuls.begin(), matmuls.end()};
}

ActivationSizes activation_sizes(const DeviceCaps& caps, const ModelConfig& config,
                                 std::span<const ModelMatmul> matmuls, const StepLimits& limits) {
  const uint64_t rows = bucket_size(limits.rows);
  const uint64_t logit_rows = std::bit_ceil(limits.logit_rows);
  ActivationSizes sizes;
  sizes.hidden = sizes.normed = sizes.projected = rows * config.width * 4;
  sizes.picked = logit_rows * config.width * 4;
  sizes.qkv = rows * (config.q_width() + 2 * config.kv_width()) * 4;
  sizes.queries = sizes.attended = rows * config.q_width() * 4;
  // Experts have their rows in the products' scratch memory.
  if (config.experts == 0) {
    sizes.gate_up = rows * 2 * config.mlp_width * 4;
    sizes.mlp = rows * config.mlp_width * 4;
  }
  sizes.routed = rows * config.experts * 4;
  if (config.has_logits())
    sizes.logits = logit_rows * (config.samples() ? config.vocabulary : config.held_tokens) * 4;
  if (config.samples()) sizes.sampling_counts = logit_rows * 4;
  add_matmuls(caps, matmuls, limits, sizes);
  add_experts(caps, config, matmuls, limits, sizes);
  add_attention(caps, config, limits, sizes);
  if (!config.samples()) return sizes;
  for_bucket_sizes(static_cast<uint32_t>(logit_rows), [&](uint32_t count) {
    sizes.sampling_scratch =
        std::max(sizes.sampling_scratch,
                 choose_sampling(caps, {.rows = count, .vocab = config.vocabulary, .stages = true})
                     .scratch_bytes());
  });
  return sizes;
}

Result<Activations> Activations::allocate(Device& device, const ActivationSizes& sizes) {
  Activations buffers;
  const auto allocate = [&](Buffer& buffer, uint64_t bytes, const char* name) -> Status {
    // Kernels get a valid address even if they need no memory.
    HEARTH_ASSIGN(buffer, device.memory().allocate({.bytes = std::max<uint64_t>(bytes, 256),
                                                    .intent = MemoryIntent::kActivations,
                                                    .name = name}));
    return {};
  };
  HEARTH_TRY(allocate(buffers.hidden, sizes.hidden, "hidden"));
  HEARTH_TRY(allocate(buffers.normed, sizes.normed, "normed"));
  HEARTH_TRY(allocate(buffers.projected, sizes.projected, "projected"));
  HEARTH_TRY(allocate(buffers.picked, sizes.picked, "picked"));
  HEARTH_TRY(allocate(buffers.qkv, sizes.qkv, "qkv"));
  HEARTH_TRY(allocate(buffers.queries, sizes.queries, "queries"));
  HEARTH_TRY(allocate(buffers.attended, sizes.attended, "attended"));
  HEARTH_TRY(allocate(buffers.attention_sums, sizes.attention_sums, "attention sums"));
  HEARTH_TRY(allocate(buffers.gate_up, sizes.gate_up, "gate and up"));
  HEARTH_TRY(allocate(buffers.mlp, sizes.mlp, "mlp"));
  HEARTH_TRY(allocate(buffers.logits, sizes.logits, "logits"));
  HEARTH_TRY(allocate(buffers.routed, sizes.routed, "routed"));
  HEARTH_TRY(allocate(buffers.matmul_scratch, sizes.matmul_scratch, "matmul scratch"));
  HEARTH_TRY(allocate(buffers.matmul_counts, sizes.matmul_counts, "matmul counts"));
  HEARTH_TRY(allocate(buffers.sampling_scratch, sizes.sampling_scratch, "sampling scratch"));
  HEARTH_TRY(allocate(buffers.sampling_counts, sizes.sampling_counts, "sampling counts"));
  HEARTH_TRY(allocate(buffers.norm_state, sizes.norm_state, "norm state"));
  HEARTH_TRY(allocate(buffers.attention_scratch, sizes.attention_counts + sizes.attention_partials,
                      "attention scratch"));
  buffers.attention_count_bytes = sizes.attention_counts;
  HEARTH_TRY(buffers.clear_counts(device));
  return buffers;
}

Status Activations::clear_counts(Device& device) const {
  HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device, {.name = "clear counts"}));
  recorder.fill(matmul_counts.all(), 0);
  recorder.fill(sampling_counts.all(), 0);
  if (attention_count_bytes > 0) recorder.fill(attention_counts(), 0);
  HEARTH_ASSIGN(const CommandBuffer commands, recorder.finish());
  return device.compute().run(commands);
}

}  // namespace hearth
