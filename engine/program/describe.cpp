#include "engine/program/describe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include <fmt/format.h>

#include "engine/program/record.h"
#include "engine/program/segments.h"
#include "runtime/pipeline_collector.h"

namespace hearth {
namespace {

std::string_view activation_name(MlpActivation activation) {
  return activation == MlpActivation::kSilu ? "silu" : "gelu";
}

std::string in_form(Value value, RowForm form) {
  return fmt::format("{}{}", value_name(value), form == RowForm::kHalves ? " (f16)" : "");
}

std::string partial_sums(const PartsPlan& parts) {
  return fmt::format("{} partial sums", parts.splits);
}

std::string formula(const PlannedEmbed& embed) {
  return fmt::format("{} = embedding[ids]", value_name(embed.op.y));
}

std::string formula(const PlannedNorm& norm) {
  std::string x(value_name(norm.op.x));
  if (norm.addend)
    x += " += " + (norm.addend->parts ? partial_sums(*norm.addend->parts)
                                      : std::string(value_name(*norm.addend->value)));
  return fmt::format("{} = norm({}){}", in_form(norm.op.y, norm.shape.form), x,
                     norm.keeps_scales ? "; keeps the scales for the next norm" : "");
}

std::string formula(const PlannedAdd& add) {
  return fmt::format("{} += {}", value_name(add.op.y), value_name(add.op.x));
}

std::string_view shared_norm(const PlannedProduct& product) {
  return product.begins ? "; begins the next norm" : product.finishes ? "; finishes the norm" : "";
}

std::string formula(const PlannedProduct& product) {
  std::string x = in_form(product.op.x, product.form);
  if (product.norm) x = fmt::format("norm({})", value_name(product.op.x));
  std::string sum = fmt::format("weight * {}{}", x, product.has_bias ? " + bias" : "");
  if (product.op.soft_cap != 0) sum = fmt::format("soft cap({})", sum);
  if (product.parts) return fmt::format("{} = {}", partial_sums(*product.parts), sum);
  if (product.gate)
    return fmt::format("{} = {}(gate) * up, both from {}{}", in_form(product.op.y, product.y_form),
                       activation_name(*product.gate), sum, shared_norm(product));
  return fmt::format("{} {} {}{}", value_name(product.op.y), product.op.adds ? "+=" : "=", sum,
                     shared_norm(product));
}

std::string rope_text(const PlannedRopeKv& rope) {
  const std::string from =
      rope.parts ? partial_sums(*rope.parts) : std::string(value_name(rope.op.qkv));
  return fmt::format("rope({}{})", rope.op.shape.head_norms ? "head norms of " : "", from);
}

std::string formula(const PlannedRopeKv& rope) {
  return fmt::format("{} = {}; keys and values to the cache", value_name(rope.op.q),
                     rope_text(rope));
}

std::string formula(const PlannedAttention& attention) {
  const std::string q =
      attention.rope ? rope_text(*attention.rope) : std::string(value_name(attention.op.q));
  std::string text = fmt::format("{} = attention({})", in_form(attention.op.y, attention.form), q);
  if (attention.op.sinks) text += " with sinks";
  if (attention.op.window != 0) text += fmt::format(" to {} tokens", attention.op.window);
  if (attention.rope) text += "; keys and values to the cache";
  return text;
}

std::string formula(const PlannedActivation& activation) {
  return fmt::format("{} = {}(gate) * up, both from {}",
                     in_form(activation.op.y, activation.shape.form),
                     activation_name(activation.op.activation), value_name(activation.op.x));
}

std::string formula(const PlannedExperts& experts) {
  const ExpertsShape& shape = experts.op.shape;
  return fmt::format(
      "{} {} {} of {} experts({}), {}{}",
      experts.parts ? partial_sums(*experts.parts) : std::string(value_name(experts.op.y)),
      experts.parts ? "=" : "+=", shape.used, shape.experts,
      experts.norm ? fmt::format("norm({})", value_name(experts.op.x))
                   : std::string(value_name(experts.op.x)),
      shape.activation == ExpertActivation::kSilu ? "silu" : "limited silu",
      experts.has_gate_up_bias || experts.has_down_bias ? ", biases" : "");
}

std::string formula(const PlannedPick& pick) {
  return fmt::format("{} = {} of {} rows of {}", value_name(pick.op.y), pick.shape.rows,
                     pick.op.source_rows, value_name(pick.op.x));
}

std::string formula(const PlannedPool& pool) {
  return fmt::format("pooled = sums over {} ranges of {}", pool.op.ranges, value_name(pool.op.x));
}

std::string formula(const PlannedKeep& keep) {
  return fmt::format("kept = {}", value_name(keep.op.x));
}

std::string formula(const PlannedCompare& compare) {
  return fmt::format("similarity = {} compared with what was kept", value_name(compare.op.x));
}

std::string formula(const PlannedClear& clear) {
  return fmt::format("{} = 0", value_name(clear.op.y));
}

std::string formula(const PlannedSum& sum) {
  const std::string rows = sum.op.own_rows > 0 ? fmt::format(", {} rows", sum.op.own_rows) : "";
  return fmt::format("{} = the sum of all ranks'{}", value_name(sum.op.y), rows);
}

std::string formula(const PlannedGather& gather) {
  return fmt::format("{} = all ranks' rows", in_form(gather.op.y, gather.form));
}

std::string formula(const PlannedJoin& join) {
  return fmt::format("{} = all ranks' side by side", value_name(join.op.y));
}

std::string formula(const PlannedMerge& merge) {
  return fmt::format("{} = all ranks' {} merged{}", value_name(merge.op.y), value_name(merge.op.x),
                     merge.op.on_last ? " on the last one" : "");
}

// Buffers of any size, for recording without a device.
StepBuffers unbound_buffers(std::span<const Buffer, kValueCount> values, const PagedKv& cache) {
  const BufferSlice any = values.front().all();
  StepBuffers buffers{.values = {},
                      .weight = [any](const WeightName&, size_t) { return any; },
                      .experts = {},
                      .cache = [&cache](uint32_t) -> const PagedKv& { return cache; },
                      .rope_table = any,
                      .window_rope_table = any,
                      .inputs = any,
                      .sampled_ids = any,
                      .matmul_scratch = any,
                      .matmul_counts = any,
                      .norm_state = any,
                      .attention_counts = any,
                      .attention_partials = any,
                      .pooled = any,
                      .similarity = any,
                      .pages = {.table = any}};
  for (size_t i = 0; i < kValueCount; ++i) buffers.values[i] = &values[i];
  return buffers;
}

bool same_ops(const LayerDescription& a, const LayerDescription& b) {
  if (a.ops.size() != b.ops.size()) return false;
  for (size_t i = 0; i < a.ops.size(); ++i)
    if (a.ops[i].part != b.ops[i].part || a.ops[i].formula != b.ops[i].formula ||
        a.ops[i].kernels != b.ops[i].kernels)
      return false;
  return true;
}

// Joins consecutive layers that run the same ops.
std::vector<LayerDescription> merged(std::vector<LayerDescription> layers) {
  std::vector<LayerDescription> result;
  for (LayerDescription& layer : layers) {
    if (!result.empty() && layer.first_layer && result.back().first_layer &&
        layer.last_layer == result.back().last_layer + 1 && same_ops(result.back(), layer))
      result.back().last_layer = layer.last_layer;
    else
      result.push_back(std::move(layer));
  }
  return result;
}

void add_sampling(const PlannedSampling& plan, std::vector<LayerDescription>& layers) {
  const auto add = [&](const char* formula, const std::optional<KernelPlan>& kernel) {
    if (!kernel) return;
    if (layers.empty() || layers.back().first_layer) layers.push_back({});
    layers.back().ops.push_back({.part = step_part::kSampling,
                                 .rows = plan.shape.rows,
                                 .formula = formula,
                                 .kernels = {{kernel->pipeline, kernel->groups}}});
  };
  add("histories += committed tokens", plan.commits);
  add("logits mixed with others", plan.mixes);
  if (!plan.sampling) return;
  add(plan.sampling->pick ? "the candidates of each chunk of logits" : "ids = the largest logits",
      plan.sampling->scan);
  add("ids = picked among the candidates", plan.sampling->pick);
  add("ids = what the rows' stages leave", plan.sampling->stages);
}

// A kernel by its name and workgroups.
std::string kernel_text(const LoggedDispatch& dispatch) {
  const auto& [pipeline, groups] = dispatch;
  std::string count = fmt::format("{}", groups.x);
  if (groups.y != 1 || groups.z != 1) count += fmt::format(" x {}", groups.y);
  if (groups.z != 1) count += fmt::format(" x {}", groups.z);
  return fmt::format("{}, {} groups of {}", pipeline.kernel, count,
                     pipeline.constants.workgroup_size());
}

// Its constants that are not 0, on lines of their own.
std::string constants_text(const KernelConstants& constants) {
  constexpr size_t kLineLength = 120;
  const std::string indent(17, ' ');
  std::string text, line = indent;
  for (const auto& [name, word, is_float] : constants.named()) {
    if (word == 0) continue;
    const std::string one = is_float ? fmt::format(" {}={}", name, std::bit_cast<float>(word))
                                     : fmt::format(" {}={}", name, word);
    if (line.size() + one.size() > kLineLength) {
      text += line + '\n';
      line = indent;
    }
    line += one;
  }
  return line == indent ? text : text + line + '\n';
}

}  // namespace

Result<std::vector<LayerDescription>> describe(const StepPlan& plan) {
  std::array<Buffer, kValueCount> values;
  std::ranges::generate(values, Buffer::of_any_size);
  const BufferSlice any = values.front().all();
  const PagedKv cache{any, any, any, any};
  StepBuffers buffers = unbound_buffers(values, cache);
  std::vector<LayerDescription> layers;
  std::optional<uint32_t> current;
  for (const PlannedOp& op : plan.ops) {
    std::vector<LoggedDispatch> log;
    PipelineCollector collector;
    CommandRecorder recorder = CommandRecorder::dry(&log);
    if (const auto* experts = op.as<PlannedExperts>())
      buffers.experts = [any, experts](const WeightName& name, const WeightName&) {
        const bool has_bias =
            name == experts->op.gate_up ? experts->has_gate_up_bias : experts->has_down_bias;
        ExpertWeights weights{.matrices = any};
        if (has_bias) weights.bias = any;
        return weights;
      };
    if (!is_meeting(op)) HEARTH_TRY(record_plan(recorder, collector, plan, {&op, 1}, buffers));
    const std::optional<uint32_t> layer =
        op.layer == kNoLayer ? std::nullopt : std::optional(op.layer);
    if (layers.empty() || layer != current)
      layers.push_back({.first_layer = layer, .last_layer = layer.value_or(0), .ops = {}});
    current = layer;
    layers.back().ops.push_back(
        {.part = op.part,
         .rows = op.rows,
         .formula = std::visit([](const auto& what) { return formula(what); }, op.what),
         .kernels = std::move(log)});
  }
  layers = merged(std::move(layers));
  add_sampling(plan.sampling, layers);
  return layers;
}

std::string to_text(const std::vector<LayerDescription>& layers) {
  std::string text;
  for (const LayerDescription& layer : layers) {
    if (layer.first_layer)
      text += *layer.first_layer == layer.last_layer
                  ? fmt::format("layer {}\n", layer.last_layer)
                  : fmt::format("layers {} to {}\n", *layer.first_layer, layer.last_layer);
    else
      text += &layer == &layers.front() ? "before the layers\n" : "after the layers\n";
    for (const OpDescription& op : layer.ops) {
      std::string left = fmt::format("  {:<14} {:<62}", op.part, op.formula);
      for (const LoggedDispatch& kernel : op.kernels) {
        text += fmt::format("{} {}\n", left, kernel_text(kernel));
        text += constants_text(kernel.pipeline.constants);
        left.assign(left.size(), ' ');
      }
      if (op.kernels.empty()) text += fmt::format("  {:<14} {}\n", op.part, op.formula);
    }
  }
  return text;
}

std::string step_text(const StepPlan& plan) {
  const StepBucket& bucket = plan.bucket;
  const auto some = [](uint32_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  const std::string what =
      bucket.sequence_rows <= 1
          ? fmt::format("decode of {}, up to {} tokens each", some(bucket.rows, "sequence"),
                        bucket.context)
          : fmt::format("{} of {}, up to {} tokens each, {}", some(bucket.rows, "row"),
                        some(bucket.sequences, "sequence"), bucket.context,
                        some(bucket.logit_rows, "logit row"));
  return what + (plan.chained ? "; its kernels form a chain" : "");
}

}  // namespace hearth
