// Causal attention over the paged KV cache for one ragged batch of prompt chunks and single tokens:
//
//   result[t, h] = sum over the visible keys j of softmax(score[t, h, j]) * value[j, h / group]
//   score[t, h, j] = scale * q[t, h] . key[j, h / group], then soft_cap * tanh(score / soft_cap)
//
// A token at position p sees the keys at positions 0..p of its own sequence, or with a window w
// those above p - w. The keys and values of this step's tokens must be in the cache already, unless
// attention also does rope and the KV write (Attention::rope). With shape.bucket.trees the last
// rows of a sequence may be a tree: such a row sees the keys before the tree and those of its
// ancestors.
//
// Usage: choose_attention() once per bucket; record_attention() once per layer of it; for every
// step an AttentionPlanner (attention_work.h), whose lists are uploaded into `work`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/ops/attention_work.h"
#include "engine/ops/cost.h"
#include "engine/ops/kernel_plan.h"
#include "engine/ops/paged_kv.h"
#include "engine/ops/rope.h"
#include "engine/ops/row_form.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct AttentionShape {
  KvFormat kv = KvFormat::kF16;
  uint32_t heads = 0, kv_heads = 0;  // heads is a multiple of kv_heads
  uint32_t head_size = 0;            // a multiple of kHeadSizeUnit, at most kMaxHeadSize
  bool f32_only = false;             // avoids matrix units, which need queries and weights as f16
  bool sinks = false;                // every head has a logit without a key (Attention::sinks)
  // Ranks share a pool of KV blocks (dealt_tables.h): the result is sums for ranks to merge.
  bool dealt = false;
  AttentionBucket bucket = {};
};
inline constexpr uint32_t kHeadSizeUnit = 16;
inline constexpr uint32_t kMaxHeadSize = 256;
inline constexpr uint32_t kDeterministicSplit = 2048;  // keys per split in deterministic attention

struct AttentionPlan {
  KernelPlan few;                       // for AttentionWork::few; not run if its capacity is 0
  std::optional<KernelPlan> many = {};  // for AttentionWork::many; only if the bucket may need it
  AttentionTuning tuning;
  AttentionCapacity capacity = {};
  bool writes_halves = false;  // in addition to floats
  bool ropes = false;          // does rope and the KV write itself
};

// `deterministic`: a row's result is the same, to the last bit, alone and in a batch, and however
// its prompt is chunked.
AttentionPlan choose_attention(const DeviceCaps& caps, const AttentionShape& shape,
                               bool deterministic = false);

// The keys and values that any row sees, once, and the rows of q and of the result as floats.
// `window` as in AttentionStep.
OpCost attention_cost(const AttentionShape& shape, std::span<const params::StepSequence> sequences,
                      uint32_t window);

// The lists of an AttentionWork on the device. Lists of capacity 0 need no buffer.
struct AttentionWorkBuffers {
  BufferSlice few, many;  // [capacity] AttentionItem
};

struct Attention {
  BufferSlice q;  // [rows, heads, head_size] f32; not used with `rope`
  // [rows, heads, head_size] in `form`; rows of padding are not written. With shape.dealt,
  // [rows, heads, head_size + kAttentionStats] f32 (params/attention.h), and rows without keys on
  // this rank are not written, either.
  BufferSlice result;
  PagedKv cache;             // the layer's
  BufferSlice block_tables;  // u32
  BufferSlice ancestors;     // [rows] u32 masks (shaders/common/tree_rows.glsl); only with trees
  AttentionWorkBuffers work;
  // `counts`: attention_count_bytes() that are zero before and after each use. `partials`: scratch
  // memory of attention_partial_bytes(), after them in the same buffer. Not needed if the plan has
  // no slots.
  BufferSlice counts, partials;
  AttentionShape shape;             // as given to choose_attention()
  uint32_t window = 0;              // 0: none
  RowForm form = RowForm::kFloats;  // REQUIRES: can_write()
  float scale = 1.0f;
  float soft_cap = 0.0f;  // 0: none
  // [heads] f32, only with shape.sinks: one more logit of every head's softmax, without a value.
  // Not with a rope that norms heads.
  BufferSlice sinks = {};
  // Rope and KV write, if attention is to do them. Only if plan.ropes, and if q, k and v are
  // consecutive segments of one buffer or partial sums in one. Its q_out is not used.
  const RopeKv* rope = nullptr;
};

uint64_t attention_result_bytes(const AttentionShape& shape, RowForm form);
// Memory that the workgroups of one record_attention() share.
uint64_t attention_partial_bytes(const AttentionCapacity& capacity, const AttentionShape& shape);
uint64_t attention_count_bytes(const AttentionCapacity& capacity, const AttentionShape& shape);

// Whether the plan's kernels can write their result in this form.
bool can_write(const AttentionPlan& plan, RowForm form);

// The pipeline for one list of an op. It is the same for steps of many sizes, because compiling is
// slow.
PipelineInfo attention_pipeline(const KernelPlan& list, const Attention& op);

// Records the kernels. Fails if they do not support the shape, or if a kernel cannot be compiled.
Status record_attention(CommandRecorder& recorder, PipelineStore& pipelines,
                        const AttentionPlan& plan, const Attention& op);

}  // namespace hearth
