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

// A member that the step samples for or whose prompt it scores. It has `scored` logit rows, and
// then 1 + proposed others if it samples.
struct SampledMember {
  RequestId request = 0;
  uint32_t first_row = 0;  // of the logit rows that are sampled; the scored ones are before it
  uint32_t scored = 0;
  bool samples = true;
  uint32_t proposed = 0;
  bool awaits_host = false;
  bool constrained = false;  // by a grammar
  // Its proposals are the candidates of contrastive search. It has a logit row for each of them, or
  // one for its newest token if there are none.
  bool contrastive = false;
};

// A member whose hidden states the step adds up, in `ranges` of StepBatch::pools.
struct PooledMember {
  RequestId request = 0;
  uint32_t first_range = 0, ranges = 0;
};

class BatchBuilder {
 public:
  // Reserves room for steps within these limits. `in_place`: see find_verified_rows().
  BatchBuilder(const SchedulerLimits& limits, bool in_place);

  // Overwrites `sampled` with the members that sample, in the order of their logit rows. Valid
  // until the next call. REQUIRES: every member of the plan is in the table.
  const StepBatch& build(const BatchPlan& plan, RequestTable& requests,
                         std::vector<SampledMember>& sampled);
  // Of the last batch.
  const std::vector<PooledMember>& pooled() const { return pooled_; }

 private:
  void add_pooled_rows(const BatchMember& member, PoolingState& pooling);
  void add_member(const BatchPlan& plan, const BatchMember& member);
  void add_candidates(const BatchPlan& plan, const BatchMember& member);
  void add_sampled_rows(const BatchPlan& plan, const BatchMember& member,
                        const ActiveRequest& request);
  void add_scored_rows(const BatchMember& member, const ActiveRequest& request);
  void mix_with_shadow();
  void keep_hidden_rows(const BatchMember& member, ActiveRequest& request);
  void add_candidate_rows(const BatchMember& member, const ActiveRequest& request);
  void add_padding(const BatchPlan& plan);
  params::StepSequence widest_sequence(uint32_t width) const;

  const bool in_place_;
  StepBatch batch_;
  std::vector<BlockId> table_;  // scratch space of add_candidates()
  std::vector<PooledMember> pooled_;
};

}  // namespace hearth
