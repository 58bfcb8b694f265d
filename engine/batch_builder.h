// Turns a plan into the batch that the device computes: rows, block tables, and which rows are
// sampled for whom. Used by the engine thread only; building a decode step's batch does not
// allocate.
#pragma once

#include <vector>

#include "engine/model/step_batch.h"
#include "engine/request_table.h"
#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/scheduler.h"

namespace hearth {

class BatchBuilder {
 public:
  // Reserves room for steps within these limits.
  explicit BatchBuilder(const SchedulerLimits& limits);

  // Overwrites `sampled` with the request of each sampled logit row, in the order of the rows.
  // Valid until the next call. REQUIRES: every member of the plan is in the table.
  const StepBatch& build(const BatchPlan& plan, const RequestTable& requests,
                         std::vector<RequestId>& sampled);

 private:
  void add_member(const BatchPlan& plan, const BatchMember& member, const ActiveRequest& request);
  void add_sampled_row(const BatchMember& member, const ActiveRequest& request);
  void add_padding(uint32_t tokens);

  StepBatch batch_;
};

}  // namespace hearth
