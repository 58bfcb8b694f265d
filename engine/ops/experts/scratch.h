// The scratch memory of experts, which choose_experts() plans and record_experts() uses.
#pragma once

#include "engine/ops/experts.h"

namespace hearth {

// Every device can dispatch this many workgroups along any axis.
inline constexpr uint32_t kMostExpertTiles = 65535;

// Where the lists and rows are in the scratch memory.
struct ExpertScratch {
  struct Part {
    uint64_t offset = 0, bytes = 0;
  };
  Part chosen, weights;                 // [rows, used]
  Part tiles, sources, scales, places;  // only with groups
  Part prepared;                        // [rows, width] f16
  Part hidden;                          // [positions, mlp_width] f32 or f16
  Part results;                         // [positions, width] f32
  uint64_t total_bytes = 0;
};

ExpertScratch expert_scratch(const ExpertsPlan& plan, const ExpertsShape& shape);

}  // namespace hearth
