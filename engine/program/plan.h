// A step as a device runs it: planned ops in order, each with its kernels and with what was fused
// into it. Plain data: buffers have names, and nothing refers to a device. `record.h` turns a plan
// into commands, `describe.h` into text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/model/step_bucket.h"
#include "engine/model/step_layout.h"
#include "engine/ops/attention.h"
#include "engine/ops/embed.h"
#include "engine/ops/experts.h"
#include "engine/ops/gather_rows.h"
#include "engine/ops/hidden_rows.h"
#include "engine/ops/matmul.h"
#include "engine/ops/norm.h"
#include "engine/ops/pool_rows.h"
#include "engine/ops/sampling.h"
#include "engine/program/op.h"

namespace hearth {

struct PlannedEmbed {
  EmbedOp op;
  EmbedShape shape;
  KernelPlan kernel;
};

// What a norm adds to its x first: a value, or the partial sums of a product.
struct Addend {
  std::optional<Value> value = {};
  std::optional<PartsPlan> parts = {};
};

struct PlannedNorm {
  NormOp op;
  RmsNormShape shape;  // with the form of y and the number of residuals
  KernelPlan kernel;
  std::optional<Addend> addend = {};
  bool keeps_scales = false;  // for a norm that two later products share
};

// An add that no norm does. It cannot be recorded: there is no kernel that only adds.
struct PlannedAdd {
  AddOp op;
};

// A norm that two products share: the first begins it, the second finishes it (params/matmul.h).
struct SharedNorm {
  WeightName weight;
  Value rows = Value::kNormed;  // f16, from the first to the second
  uint32_t groups = 0;          // workgroups of the first product
  float epsilon = 0;
};

// A norm that a product does itself, each workgroup that of its row.
struct RowNorm {
  WeightName weight;
  float epsilon = 0;
};

struct PlannedProduct {
  ProductOp op;                        // op.x and op.y as the kernels read and write them
  std::vector<MatmulChoice> segments;  // of the weight
  std::vector<size_t> turns;           // how many of them run side by side, turn by turn
  bool has_bias = false;
  RowForm form = RowForm::kFloats;   // of x
  std::optional<RowNorm> norm = {};  // of x
  std::optional<SharedNorm> begins = {}, finishes = {};
  std::optional<PartsPlan> parts = {};     // leaves partial sums, which the next op adds up
  std::optional<MlpActivation> gate = {};  // combines gate and up; op.y has half the outputs
  RowForm y_form = RowForm::kFloats;       // only with a gate
};

// Where some of a weight's outputs are, in the value that holds them or in partial sums.
struct OutputPlace {
  uint64_t offset = 0, bytes = 0;
  uint32_t stride = 0;  // floats from row to row
  uint32_t column = 0;  // of the rows that the stride separates
};

struct PlannedRopeKv {
  RopeKvOp op;  // with its complete shape
  OutputPlace q, k, v;
  std::optional<PartsPlan> parts = {};  // instead of op.qkv
  KernelPlan kernel;                    // not used if attention does this op's work
};

struct PlannedAttention {
  AttentionOp op;
  size_t list = 0;                         // of StepLayout::attention
  RowForm form = RowForm::kFloats;         // of y
  std::optional<PlannedRopeKv> rope = {};  // attention does its work
};

struct PlannedActivation {
  ActivationOp op;
  MlpShape shape;  // with the form of y
  OutputPlace gate, up;
  KernelPlan kernel;
};

struct PlannedExperts {
  ExpertsOp op;  // with its complete shape
  ExpertsPlan plan;
  bool has_gate_up_bias = false, has_down_bias = false;
  std::optional<RowNorm> norm = {};     // of x
  std::optional<PartsPlan> parts = {};  // leaves each expert's result, which the next op adds up
};

struct PlannedPick {
  PickOp op;
  GatherRowsShape shape;
  KernelPlan kernel;
};

struct PlannedPool {
  PoolOp op;
  PoolRowsShape shape;
  KernelPlan kernel;
};

struct PlannedKeep {
  KeepOp op;
  HiddenRowsShape shape;
  KernelPlan kernel;
};

struct PlannedCompare {
  CompareOp op;
  HiddenRowsShape shape;
  KernelPlan kernel;
};

struct PlannedClear {
  ClearOp op;
};

// Where ranks meet; segments.h cuts a plan there.
struct PlannedSum {
  SumOp op;
};

struct PlannedGather {
  GatherOp op;
  RowForm form = RowForm::kFloats;
};

struct PlannedJoin {
  JoinOp op;
};

struct PlannedMerge {
  MergeOp op;
};

struct PlannedOp {
  std::string_view part;
  uint32_t layer = 0, rows = 0;
  std::variant<PlannedEmbed, PlannedNorm, PlannedAdd, PlannedProduct, PlannedRopeKv,
               PlannedAttention, PlannedActivation, PlannedExperts, PlannedPick, PlannedPool,
               PlannedKeep, PlannedCompare, PlannedClear, PlannedSum, PlannedGather, PlannedJoin,
               PlannedMerge>
      what;

  template <class T>
  T* as() {
    return std::get_if<T>(&what);
  }
  template <class T>
  const T* as() const {
    return std::get_if<T>(&what);
  }
};

// What follows the logits: commits of accepted tokens, logits mixed with others, sampling. Each
// only if the bucket has it.
struct PlannedSampling {
  SamplingShape shape;
  std::optional<KernelPlan> commits = {};
  std::optional<KernelPlan> mixes = {};
  std::optional<SamplingPlan> sampling = {};
};

struct StepPlan {
  StepBucket bucket;
  bool repeats = false;         // can run again by itself; a step that meets other ranks cannot
  bool chained = false;         // its kernels form a chain (runtime/chain.h)
  uint32_t large_dispatch = 0;  // of the chain: RecorderOptions::large_dispatch
  // Attention is planned once for all layers of a bucket, and so are the places of a step's inputs.
  AttentionShape attention_shape;
  AttentionPlan attention;
  StepLayout layout;
  std::vector<PlannedOp> ops;
  PlannedSampling sampling;
};

}  // namespace hearth
