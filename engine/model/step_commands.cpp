// A step as commands: its plan with the runner's buffers, then sampling.
#include "engine/model/step_runner.h"
#include "engine/sampling/sampler.h"
#include "runtime/device.h"

namespace hearth {
StepBuffers StepRunner::buffers(size_t copy, const HiddenOutputs& hidden) const {
  const Activations& buffers = activations_;
  StepBuffers bound{
      .values = {},
      .weight =
          [this](const WeightName& name, size_t segment) {
            return model_.weights().get(name.role, name.layer)[segment].buffer.all();
          },
      .experts =
          [this](const WeightName& name, const WeightName& bias) {
            const WeightSegment& segment = model_.weights().get(name.role, name.layer).front();
            ExpertWeights weights{.matrices = segment.buffer.all(),
                                  .stride_bytes = segment.table ? 0 : segment.expert_stride};
            if (segment.table) weights.table = segment.table.all();
            if (model_.weights().has(bias.role, bias.layer))
              weights.bias = model_.weights().get(bias.role, bias.layer).front().buffer.all();
            return weights;
          },
      .cache = [this](uint32_t layer) -> const PagedKv& { return kv_.layer(layer); },
      .rope_table = model_.rope_table().all(),
      .window_rope_table = model_.window_rope_table().all(),
      .inputs = inputs_.buffer(copy).all(),
      .sampled_ids = sampled_ids().all(),
      .matmul_scratch = buffers.matmul_scratch.all(),
      .matmul_counts = buffers.matmul_counts.all(),
      .norm_state = buffers.norm_state.all(),
      .attention_counts = buffers.attention_counts(),
      .attention_partials = buffers.attention_partials(),
      .pooled = hidden.pooled.all(),
      .similarity = hidden.similarity.all(),
      .pages = hidden.pages};
  for (size_t i = 0; i < kValueCount; ++i) bound.values[i] = &value_buffer(static_cast<Value>(i));
  return bound;
}

const Buffer& StepRunner::value_buffer(Value value) const {
  const Activations& buffers = activations_;
  switch (value) {
    case Value::kHidden:
      return buffers.hidden;
    case Value::kNormed:
      return buffers.normed;
    case Value::kProjected:
      return buffers.projected;
    case Value::kPicked:
      return buffers.picked;
    case Value::kQkv:
      return buffers.qkv;
    case Value::kQueries:
      return buffers.queries;
    case Value::kAttended:
      return buffers.attended;
    case Value::kGateUp:
      return buffers.gate_up;
    case Value::kMlp:
      return buffers.mlp;
    case Value::kLogits:
      return buffers.logits;
    case Value::kAttentionSums:
      return buffers.attention_sums;
    case Value::kRouted:
      break;
  }
  return buffers.routed;
}

bool StepRunner::has_commands(const PlanSegment& segment) const {
  return segment.meeting || !segment.ops.empty() || model_.config().samples();
}

Result<std::vector<CommandBuffer>> StepRunner::record(PipelineStore& pipelines,
                                                      const StepPlan& plan, size_t copy,
                                                      GpuTimer* timer) {
  const StepBucket& bucket = plan.bucket;
  const RecorderOptions options{.name = "step",
                                .timer = timer,
                                .serial = timer != nullptr,
                                .chained = plan.chained && timer == nullptr,
                                .large_dispatch = plan.large_dispatch,
                                .guarded = plan.repeats};
  if ((bucket.extras & kStepPools) != 0) HEARTH_TRY(allocate_pools());
  if ((bucket.extras & kStepHidden) != 0) HEARTH_TRY(allocate_hidden());
  const std::vector<PlanSegment> segments = cut_at_meetings(plan);
  std::vector<CommandBuffer> commands;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (!has_commands(segments[i])) continue;
    HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device_, options));
    HEARTH_TRY(record_segment({recorder, pipelines, plan, copy}, segments, i,
                              {.pooled = pooled_[copy],
                               .similarity = similarity_[copy],
                               .pages = hidden_ ? hidden_->pages() : HiddenPages{}}));
    HEARTH_ASSIGN(CommandBuffer segment, recorder.finish());
    commands.push_back(std::move(segment));
  }
  return commands;
}

Status StepRunner::record_segment(const Recording& recording, std::span<const PlanSegment> segments,
                                  size_t index, const HiddenOutputs& hidden) const {
  CommandRecorder& recorder = recording.recorder;
  const uint32_t rows = recording.plan.bucket.rows;
  const PlanSegment& segment = segments[index];
  if (index == 0)
    boundary_.record_entering(recorder, recording.copy, activations_.hidden, rows);
  else
    meetings_.record_entering(recorder, *segments[index - 1].meeting,
                              value_buffer(segments[index - 1].meeting->y));
  HEARTH_TRY(record_plan(recorder, recording.pipelines, recording.plan, segment.ops,
                         buffers(recording.copy, hidden)));
  if (segment.meeting) {
    meetings_.record_leaving(recorder, *segment.meeting, value_buffer(segment.meeting->x));
    return {};
  }
  if (!model_.config().has_output()) {
    boundary_.record_leaving(recorder, recording.copy, activations_.hidden, rows);
    return {};
  }
  if (!model_.config().samples()) return {};
  recorder.set_section(step_part::kSampling);
  return record_sampling(recording);
}

Status StepRunner::record_sampling(const Recording& recording) const {
  const auto& [recorder, pipelines, plan, copy] = recording;
  const StepBucket& bucket = plan.bucket;
  const StepLayout& layout = plan.layout;
  const auto& [shape, commits, mixes, sampling] = plan.sampling;
  const Buffer& inputs = inputs_.buffer(copy);
  if (commits)
    HEARTH_TRY(record_history_commits(
        recorder, pipelines, *commits,
        {.commits = inputs.slice(layout.commits, bucket.sequences * sizeof(params::HistoryCommit)),
         .words = inputs_.words(copy),
         .history_lengths = history_lengths_.all(),
         .history = history_.all(),
         .history_capacity = kHistoryTokens}));
  if (!sampling) return {};
  const BufferSlice logits = activations_.logits.slice(0, uint64_t{shape.rows} * shape.vocab * 4);
  const BufferSlice rows = inputs.slice(layout.sampling, shape.rows * sizeof(params::SamplingRow));
  if (mixes)
    HEARTH_TRY(record_mix_logits(
        recorder, pipelines, *mixes,
        {.logits = logits,
         .other_logits = options_.other_logits != nullptr ? options_.other_logits->all() : rows,
         .rows = rows,
         .biases = biases_.all(),
         .words = inputs_.words(copy),
         .shape = shape}));
  return hearth::record_sampling(recorder, pipelines, *sampling,
                                 {.logits = logits,
                                  .rows = rows,
                                  .biases = biases_.all(),
                                  .history_lengths = history_lengths_.all(),
                                  .history = history_.all(),
                                  .scratch = activations_.sampling_scratch.all(),
                                  .counts = activations_.sampling_counts.all(),
                                  .ids = sampled_ids().all(),
                                  .results = sampled_[copy].results.all(),
                                  .top = sampled_[copy].top.all(),
                                  .words = inputs_.words(copy),
                                  .mirostat = mirostat_.all(),
                                  .mirostat_rows = sampled_[copy].mirostat.all(),
                                  .shape = shape,
                                  .history_capacity = kHistoryTokens});
}

}  // namespace hearth
