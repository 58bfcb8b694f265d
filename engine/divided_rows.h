// From how many rows on the steps of a tensor split divide them between sums
// (program/row_division.h), and how to tell a person.
#pragma once

#include <cstdint>
#include <string>

#include "engine/model/activations.h"
#include "engine/model/model.h"
#include "engine/ranks/row_division_cost.h"
#include "runtime/device_caps.h"
#include "runtime/result.h"

namespace hearth {

struct DividedRows {
  // For StepLimits::divided_rows: the smallest power of two from which on dividing saves time in
  // every step; 0 if there is none.
  uint32_t from = 0;
  uint32_t largest = 0;      // the largest step that was considered; 0: all are too small
  double saved_seconds = 0;  // per sum in that step; negative if dividing takes longer
};

// `plan` is a rank's share of the model.
DividedRows choose_divided_rows(const DeviceCaps& caps, const ModelPlan& plan,
                                const StepLimits& limits, const MeetingCost& cost);

// "norms are divided over the ranks in steps of 512 tokens or more, which saves ..."
std::string divided_rows_text(const DividedRows& choice, const MeetingCost& cost);
// The same for a number that was not measured; `why` is "--divide-rows", for example.
std::string divided_rows_text(uint32_t from, const std::string& why);

}  // namespace hearth
