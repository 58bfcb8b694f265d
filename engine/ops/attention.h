// Causal attention over the paged KV cache for one ragged batch of prompt chunks and single tokens:
//
//   result[t, h] = sum over keys j that t sees of softmax(score[t, h, j]) * value[j, h / group]
//   score[t, h, j] = scale * q[t, h] . key[j, h / group], then soft_cap * tanh(score / soft_cap)
//
// A token at position p sees the keys at 0..p of its own sequence, with a window w those above
// p - w. The keys and values of this step's tokens must be in the cache already, unless attention
// does what comes before it too (Attention::rope).
//
// How it is used: choose_attention() once for a bucket; record_attention() once for a layer of it;
// plan_attention() (attention_work.h) for every step, its lists uploaded into `work`.
#pragma once

#include "engine/ops/kernel_choice.h"
#include "engine/ops/paged_kv.h"
#include "engine/ops/rope.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

// The lists of an AttentionWork on the device. Lists of capacity 0 need no buffer.
struct AttentionWorkBuffers {
  BufferSlice few, many;  // [capacity] AttentionItem
};

struct Attention {
  BufferSlice q;             // [rows, heads, head_size] f32; not used with `rope`
  BufferSlice result;        // [rows, heads, head_size] in `form`; rows of padding are not written
  PagedKv cache;             // of the layer
  BufferSlice block_tables;  // u32
  AttentionWorkBuffers work;
  // attention_count_bytes() that are zero before and after each use, and somewhere after them in
  // the same buffer scratch of attention_partial_bytes(). Not needed where the plan has no slots.
  BufferSlice counts, partials;
  AttentionShape shape;             // what the plan was made for
  uint32_t window = 0;              // 0: none
  RowForm form = RowForm::kFloats;  // that can_write()
  float scale = 1.0f;
  float soft_cap = 0.0f;  // 0: none
  // What is between the projection and attention, to be done on the way. Only where the plan ropes,
  // and where q, k and v are segments of one buffer, one after the other, or parts of one. Its
  // q_out is not used.
  const RopeKv* rope = nullptr;
};

// Memory between the groups of one record_attention.
uint64_t attention_partial_bytes(const AttentionCapacity& capacity, const AttentionShape& shape);
uint64_t attention_count_bytes(const AttentionCapacity& capacity, const AttentionShape& shape);

// Whether the plan's kernels can write their result in that form.
bool can_write(const AttentionPlan& plan, RowForm form);

// The pipeline for a list of an op: the same for steps of many sizes, since compiling takes long.
PipelineInfo attention_pipeline(const KernelPlan& list, const Attention& op);

// Records the kernels. Fails if the shape is outside what the kernels take, or if a kernel cannot
// be compiled.
Status record_attention(CommandRecorder& recorder, PipelineStore& pipelines,
                        const AttentionPlan& plan, const Attention& op);

}  // namespace hearth
