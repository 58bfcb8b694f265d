// Sums StepRecords up: when each request's tokens were sampled, and how well steps and KV blocks
// were used. Pure.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/step_record.h"

namespace hearth {

// How well steps were used. Averages over time are weighted by the time of each step, so that idle
// time does not count.
struct StepUse {
  uint64_t steps = 0;
  uint64_t tokens = 0, padding_tokens = 0;  // computed for requests; computed as padding
  uint64_t preemptions_recompute = 0, preemptions_swap = 0;
  double busy_seconds = 0;      // in which a step ran, block moves before it included
  double last_end_seconds = 0;  // when the last step ended, on the engine's clock
  double member_seconds = 0;    // sequences in the step, times seconds
  double running_seconds = 0;   // sequences that hold blocks, times seconds
  double blocks_used_seconds = 0, blocks_shared_seconds = 0;
  double kv_token_seconds = 0, wasted_token_seconds = 0;  // filled and empty places in held blocks

  // Shares from 0 to 1; 0 if there were no steps.
  double busy_share(double begin_seconds) const;  // of the time from then to the last step's end
  double occupancy(uint32_t max_sequences) const;
  double padding_share() const;
  double kv_used_share(uint32_t pool_blocks) const;
  double kv_waste_share() const;
  double kv_shared_share() const;  // used blocks that more than one sequence holds
  double wasted_tokens_per_sequence() const;
};

class StepTally {
 public:
  // REQUIRES: steps are added in order.
  void add(const StepRecord& record);

  const StepUse& use() const { return use_; }
  // When the request's tokens were sampled, on the engine's clock.
  std::vector<double> take_token_times(RequestId request);
  // When the engine accepted the request, on its clock. REQUIRES: the request was in a step.
  double submit_time(RequestId request) const { return submit_times_.at(request); }

 private:
  StepUse use_;
  std::unordered_map<RequestId, double> submit_times_;
  std::unordered_map<RequestId, std::vector<double>> token_times_;
};

}  // namespace hearth
