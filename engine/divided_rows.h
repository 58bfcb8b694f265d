// From how many rows on the steps of a tensor split divide them between sums
// (program/row_division.h).
#pragma once

#include <cstdint>

#include "engine/model/activations.h"
#include "engine/model/model.h"
#include "engine/ranks/row_division_cost.h"
#include "runtime/device_caps.h"
#include "runtime/result.h"

namespace hearth {

// The smallest power of two from which on dividing saves time in every step, for
// StepLimits::divided_rows; 0 if there is none. `plan` is a rank's share of the model.
uint32_t choose_divided_rows(const DeviceCaps& caps, const ModelPlan& plan,
                             const StepLimits& limits, const MeetingCost& cost);

}  // namespace hearth
