// Turns a plan into the batch that the device computes: rows, block tables, and which rows are
// sampled for which request. Used by the engine thread only; building a decode step's batch does
// not allocate.
#pragma once

#include <vector>

#include "engine/model/step_batch.h"
#include "engine/request_table.h"
#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/scheduler.h"

namespace hearth {

// A member that the step samples for. It has 1 + proposed logit rows.
struct SampledMember {
  RequestId request = 0;
  uint32_t first_row = 0;  // of the logit rows
  uint32_t proposed = 0;
  bool awaits_host = false;
  bool constrained = false;  // by a grammar
};

class BatchBuilder {
 public:
  // Reserves room for steps within these limits.
  explicit BatchBuilder(const SchedulerLimits& limits);

  // Overwrites `sampled` with the members that sample, in the order of their logit rows. Valid
  // until the next call. REQUIRES: every member of the plan is in the table.
  const StepBatch& build(const BatchPlan& plan, RequestTable& requests,
                         std::vector<SampledMember>& sampled);

 private:
  void add_member(const BatchPlan& plan, const BatchMember& member);
  void add_sampled_rows(const BatchPlan& plan, const BatchMember& member,
                        const ActiveRequest& request);
  void add_padding(uint32_t tokens);

  StepBatch batch_;
};

}  // namespace hearth
