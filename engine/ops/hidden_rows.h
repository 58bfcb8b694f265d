// Hidden states that are kept from step to step, and compared with later ones; for contrastive
// search.
#pragma once

#include "engine/ops/cost.h"
#include "engine/ops/kernel_plan.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct HiddenRowsShape {
  uint32_t rows = 0;   // to keep, or comparisons
  uint32_t width = 0;  // a multiple of 8
};

KernelPlan choose_keep_hidden(const DeviceCaps& caps, const HiddenRowsShape& shape);
KernelPlan choose_compare_hidden(const DeviceCaps& caps, const HiddenRowsShape& shape);

OpCost keep_hidden_cost(const HiddenRowsShape& shape);

// Pages of hidden states, [kHiddenPageTokens, width] f16 each.
struct HiddenPages {
  BufferSlice table;        // [slots, slot_pages] u64: the pages' addresses
  uint32_t slot_pages = 0;  // most pages of a sequence
};

// pages[places[r]] = x[r] / |x[r]|
struct KeepHidden {
  BufferSlice x;       // [rows, width] f32
  BufferSlice places;  // [rows] params::HiddenPlace
  HiddenPages pages;
  HiddenRowsShape shape;
};
Status record_keep_hidden(CommandRecorder& recorder, PipelineStore& pipelines,
                          const KernelPlan& plan, const KeepHidden& op);

// similarity[c] = the largest cosine similarity of row `row` of x to the first `tokens` kept hidden
// states of a slot, in parts of which the largest counts.
struct CompareHidden {
  BufferSlice x;            // [rows, width] f32
  BufferSlice comparisons;  // [comparisons] params::HiddenComparison
  HiddenPages pages;
  BufferSlice similarity;  // [comparisons, kComparisonParts] f32
  HiddenRowsShape shape;
};
Status record_compare_hidden(CommandRecorder& recorder, PipelineStore& pipelines,
                             const KernelPlan& plan, const CompareHidden& op);

}  // namespace hearth
