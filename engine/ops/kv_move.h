// Moves single positions of sequences within the KV cache, in all planes of an allocation at once.
// shaders/kv_move.comp has the formula.
#pragma once

#include "engine/ops/kernel_choice.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct KvMove {
  BufferSlice cache;   // the allocation that contains the planes
  BufferSlice planes;  // [planes] params::KvPlane
  BufferSlice lists;   // [lists] params::KvMoveList, one per sequence
  BufferSlice words;   // u32: their pairs
  KvMoveShape shape;
};

Status record_kv_move(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                      const KvMove& op);

}  // namespace hearth
