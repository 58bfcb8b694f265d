#include "engine/program/step_program.h"

#include <algorithm>
#include <utility>

#include "engine/model/step_layout.h"
#include "engine/program/op_values.h"
#include "engine/program/row_division.h"

namespace hearth {
namespace {

// In a decode step row i is the wanted row of sequence i, so there is nothing to pick.
bool picks_rows(const StepBucket& bucket) {
  return bucket.sequence_rows > 1 && bucket.logit_rows > 0;
}

// The index after the last op of a kind.
template <class T>
size_t end_of_last(const std::vector<Op>& ops) {
  const auto last =
      std::find_if(ops.rbegin(), ops.rend(), [](const Op& op) { return op.as<T>() != nullptr; });
  return static_cast<size_t>(ops.rend() - last);
}

Op pick(const StepBucket& bucket, Op op, const PickOp& what) {
  op.rows = bucket.logit_rows;
  op.what = what;
  return op;
}

// The index after the last attention, and after the merging of ranks' attention.
size_t end_of_attention(const std::vector<Op>& ops) {
  return std::max(end_of_last<AttentionOp>(ops), end_of_last<MergeOp>(ops));
}

// Only the last rank goes on after the attention of the last layer.
void merge_on_last(std::vector<Op>& ops) {
  const size_t end = end_of_last<MergeOp>(ops);
  if (end > 0) std::get<MergeOp>(ops[end - 1].what).on_last = true;
}

// After the last attention, only the wanted rows: the hidden state and attention's result move to
// values that hold them alone.
void pick_after_attention(const ModelConfig& config, const StepBucket& bucket,
                          std::vector<Op>& ops) {
  const size_t end = end_of_attention(ops);
  for (size_t i = end; i < ops.size(); ++i) {
    rename_value(ops[i], Value::kHidden, Value::kPicked);
    rename_value(ops[i], Value::kAttended, Value::kQueries);
    ops[i].rows = bucket.logit_rows;
  }
  const Op place{.part = step_part::kAttentionOut, .layer = config.layers - 1};
  const Op picks[] = {pick(bucket, place,
                           {.y = Value::kPicked,
                            .x = Value::kHidden,
                            .width = config.width,
                            .source_rows = bucket.rows}),
                      pick(bucket, place,
                           {.y = Value::kQueries,
                            .x = Value::kAttended,
                            .width = config.q_width(),
                            .source_rows = bucket.rows})};
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(end), std::begin(picks), std::end(picks));
}

// What a step does with the hidden states of all its rows.
void emit_hidden_states(const StepBucket& bucket, Builder& builder) {
  const uint32_t width = builder.config().width;
  if ((bucket.extras & kStepPools) != 0)
    builder.append(step_part::kPooling, PoolOp{.width = width, .ranges = step_pools(bucket)});
  if ((bucket.extras & kStepHidden) == 0) return;
  builder.append(step_part::kHiddenStates, KeepOp{.width = width});
  if (bucket.logit_rows > 0)
    builder.append(step_part::kHiddenStates,
                   CompareOp{.width = width, .comparisons = bucket.logit_rows});
}

// The logits of the wanted rows of hidden states that all rows have.
void pick_before_logits(const ModelConfig& config, const StepBucket& bucket, std::vector<Op>& ops) {
  Op& logits = ops.back();
  const Op place{.part = ops[ops.size() - 2].part, .layer = kNoLayer};
  rename_value(logits, Value::kNormed, Value::kPicked);
  logits.rows = bucket.logit_rows;
  ops.insert(ops.end() - 1, pick(bucket, place,
                                 {.y = Value::kPicked,
                                  .x = Value::kNormed,
                                  .width = config.width,
                                  .source_rows = bucket.rows}));
}

Op join_logits(const StepProgramInfo& info) {
  return {.part = step_part::kRanks,
          .layer = kNoLayer,
          .rows = info.bucket.logit_rows,
          .what = JoinOp{.width = info.config.held_tokens, .joined_width = info.config.vocabulary}};
}

std::vector<Op> whole_program(const StepProgramInfo& info) {
  const StepBucket& bucket = info.bucket;
  Builder builder(info.config, bucket.rows);
  if (info.config.has_input()) builder.embed();
  for (const uint32_t layer : info.layers) {
    builder.begin_layer(layer);
    info.emit_layer(builder);
  }
  if (!info.config.has_output()) {
    builder.norm(Value::kNormed, Value::kHidden, WeightRole::kAttentionNorm);
    return builder.take();
  }
  builder.end_layers();
  const bool all_rows = needs_all_rows(bucket);
  if (bucket.logit_rows == 0 && !all_rows) {
    std::vector<Op> ops = builder.take();
    ops.resize(end_of_last<RopeKvOp>(ops));
    return ops;
  }
  if (!info.config.has_logits()) {
    std::vector<Op> ops = builder.take();
    ops.resize(end_of_attention(ops));
    merge_on_last(ops);
    return ops;
  }
  builder.norm(Value::kNormed, Value::kHidden, WeightRole::kOutputNorm);
  emit_hidden_states(bucket, builder);
  const WeightName output{WeightRole::kOutput};
  if (bucket.logit_rows > 0)
    builder.logits(info.weights.has(output) ? output.role : WeightRole::kEmbedding);
  std::vector<Op> ops = builder.take();
  merge_on_last(ops);
  if (picks_rows(bucket) && all_rows)
    pick_before_logits(info.config, bucket, ops);
  else if (picks_rows(bucket))
    pick_after_attention(info.config, bucket, ops);
  if (info.config.shard.is_divided() && bucket.logit_rows > 0) ops.push_back(join_logits(info));
  return ops;
}

}  // namespace

std::vector<Op> step_program(const StepProgramInfo& info) {
  std::vector<Op> ops = whole_program(info);
  const TensorShard& shard = info.config.shard;
  const bool divides = info.divides_rows && shard.is_divided() && info.bucket.rows >= shard.count &&
                       can_divide_rows(ops);
  return divides ? divide_rows(std::move(ops), shard, info.bucket.rows) : ops;
}

}  // namespace hearth
