// Embedding lookup: y[r, i] = weight[ids[r] - first, i] * scale
#pragma once

#include "engine/ops/cost.h"
#include "engine/ops/kernel_plan.h"
#include "engine/weights/formats.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct EmbedShape {
  WeightFormat format = WeightFormat::kF16;
  uint32_t rows = 0;
  uint32_t width = 0;  // a multiple of the format's block
  uint32_t vocabulary = 0;
};

KernelPlan choose_embed(const DeviceCaps& caps, const EmbedShape& shape);

OpCost embed_cost(const EmbedShape& shape);

struct Embed {
  // [rows] u32; the row of an id that the table does not have is zero. With the bit
  // params::kSampledId it is an index into `sampled`.
  BufferSlice ids;
  BufferSlice sampled;  // u32; any buffer if no id has the bit
  BufferSlice weight;   // [vocabulary, width] in shape.format, device layout
  BufferSlice y;        // [rows, width] f32
  EmbedShape shape;
  float scale = 1.0f;  // sqrt(width) for gemma
  uint32_t first = 0;  // the id of the table's first row
};

// Records the kernel. Fails if the width is not a multiple of the format's block, the table has
// 2^32 weights or more, or the kernel cannot be compiled.
Status record_embed(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                    const Embed& op);

}  // namespace hearth
