// The products of experts for steps of a few rows on matrix units, with kernels that read each
// expert's weights once: experts_one_row and experts_few.
#pragma once

#include <optional>

#include "engine/ops/experts.h"

namespace hearth {

// A product of an expert, for all tiles.
struct ExpertProductShape {
  WeightFormat format;
  uint32_t inputs, outputs;
  bool gated;
};

// Both products: the first chooses the experts, and the rows between them are f16.
struct FewExperts {
  ExpertProduct gate_up, down;
};

// For MXFP4, whose bits are cheap to turn into halves and costly to turn into integers. Empty if
// the device has no kernels for it, or if there are too many rows. Pure.
std::optional<FewExperts> choose_few_experts(const DeviceCaps& caps, const ExpertsShape& shape);

}  // namespace hearth
