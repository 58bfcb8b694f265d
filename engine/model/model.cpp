#include "engine/model/model.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/model/weight_shard.h"
#include "engine/ops/sampling.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/transfer.h"

namespace hearth {
namespace {

Result<Buffer> load_rope_table(Device& device, const ModelConfig& config, const RopeConfig& rope,
                               uint32_t context) {
  RopeTableInfo info = rope.info;
  info.dims = config.rope_dims;
  info.factors = rope.factors;
  info.long_factors = rope.long_factors;
  info.context = context;
  HEARTH_ASSIGN(const RopeTable table, make_rope_table(info));
  const std::vector<uint32_t> words = rope_table_words(table);
  const std::span<const std::byte> bytes = std::as_bytes(std::span<const uint32_t>(words));
  HEARTH_ASSIGN(Buffer buffer, device.memory().allocate({.bytes = bytes.size(),
                                                         .intent = MemoryIntent::kWeights,
                                                         .name = "rope table"}));
  HEARTH_ASSIGN(const auto transfer,
                Transfer::create(device, {.ring_bytes = 1 << 20, .chunk_bytes = 1 << 20}));
  HEARTH_TRY(transfer->upload(buffer.all(), bytes));
  HEARTH_TRY(transfer->finish());
  return buffer;
}

// Leaves what the held layers need.
void keep_held(WeightTable& table, const ModelConfig& config, const ModelFile& file) {
  const bool tied = std::ranges::none_of(table.specs(), [&](const WeightSpec& spec) {
    return spec.role == WeightRole::kOutput && !plan_segments(spec, file).empty();
  });
  table.keep([&](const WeightSpec& spec) {
    switch (spec.role) {
      case WeightRole::kEmbedding:
        return config.has_input() || (tied && config.has_logits());
      case WeightRole::kOutputNorm:
      case WeightRole::kOutput:
        return config.has_logits();
      default:
        return spec.layer >= config.first_layer() && spec.layer < config.end_layer();
    }
  });
}

}  // namespace

Result<ModelPlan> plan_model(const ModelFile& file, LayerRange held, TensorShard shard,
                             BlockDeal deal) {
  ModelPlan plan;
  if (file.tensors().empty())
    return Error{
        ErrorKind::kInvalid,
        fmt::format(
            "{} has no weights: it is only a vocabulary or a configuration{}", file.name(),
            file.kind() == FileKind::kHuggingFace ? " (the folder has no *.safetensors)" : "")};
  HEARTH_ASSIGN(plan.architecture, find_architecture(file));
  HEARTH_ASSIGN(plan.config, plan.architecture->read_config(file));
  plan.table = plan.architecture->weight_table(plan.config);
  HEARTH_TRY(plan.table.check(file));
  for (const WeightSpec& spec : plan.table.specs())
    for (const SegmentPlan& segment : plan_segments(spec, file))
      plan.parameters += segment.rows * segment.cols;
  HEARTH_TRY(shard_weights(file, shard, plan.config, plan.table));
  plan.matmuls = model_matmuls(plan.table, file);
  plan.config.f32_attention = std::ranges::all_of(
      plan.matmuls, [](const ModelMatmul& matmul) { return matmul.format == WeightFormat::kF32; });
  for (const WeightSpec& spec : plan.table.specs()) {
    WeightShape shape;
    for (const SegmentPlan& segment : plan_segments(spec, file))
      shape.push_back({.format = segment.format,
                       .rows = static_cast<uint32_t>(segment.matrix_rows()),
                       .cols = static_cast<uint32_t>(segment.cols)});
    if (!shape.empty()) plan.shapes.set({spec.role, spec.layer}, std::move(shape));
  }
  plan.config.held = held;
  plan.config.deal = deal;
  keep_held(plan.table, plan.config, file);
  for (const WeightSpec& spec : plan.table.specs())
    for (const SegmentPlan& segment : plan_segments(spec, file))
      plan.weight_bytes += segment.device_bytes();
  if (plan.config.vocabulary > kMaxSamplingVocab)
    return Error{ErrorKind::kUnsupported,
                 fmt::format("{}: a vocabulary of {} is more than the {} that can be sampled from",
                             file.name(), plan.config.vocabulary, kMaxSamplingVocab)};
  return plan;
}

Result<std::unique_ptr<Model>> Model::load(Device& device, const ModelFile& file,
                                           const ModelOptions& options) {
  HEARTH_ASSIGN(std::unique_ptr<Model> model, allocate(device, file, options));
  HEARTH_TRY(model->fill(device, file, options));
  return model;
}

Result<std::unique_ptr<Model>> Model::allocate(Device& device, const ModelFile& file,
                                               const ModelOptions& options) {
  std::unique_ptr<Model> model(new Model());
  HEARTH_ASSIGN(model->plan_, plan_model(file, options.held, options.shard, options.deal));
  const ModelConfig& config = model->plan_.config;
  model->context_ =
      options.context == 0 ? config.context : std::min(options.context, config.context);
  HEARTH_ASSIGN(model->rope_table_, load_rope_table(device, config, config.rope, model->context_));
  if (!config.window_rope.empty()) {
    HEARTH_ASSIGN(model->window_rope_table_,
                  load_rope_table(device, config, config.window_rope.front(), model->context_));
  }
  HEARTH_ASSIGN(model->weights_, ModelWeights::allocate(device, file, model->plan_.table));
  return model;
}

Status Model::fill(Device& device, const ModelFile& file, const ModelOptions& options) const {
  return weights_.fill(device, file, plan_.table,
                       {.norm_offset = plan_.config.norm_offset, .progress = options.progress});
}

}  // namespace hearth
