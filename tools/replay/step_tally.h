// Adds up StepRecords: when each request's tokens came, and how well steps and KV blocks were used.
// Pure.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/step_record.h"

namespace hearth {

// How steps were used. What changes over time is weighed by the time a step took, so that time in
// which there was nothing to do does not count.
struct StepUse {
  uint64_t steps = 0;
  uint64_t tokens = 0, padding_tokens = 0;  // rows that were computed for someone, for nobody
  uint64_t preemptions_recompute = 0, preemptions_swap = 0;
  double busy_seconds = 0;
  double member_seconds = 0;   // sequences in a step
  double running_seconds = 0;  // sequences that hold blocks
  double blocks_used_seconds = 0, blocks_shared_seconds = 0;
  double kv_token_seconds = 0, wasted_token_seconds = 0;  // places in blocks with a token, without

  // All from 0 to 1; 0 where there was nothing.
  double occupancy(uint32_t max_sequences) const;
  double padding_share() const;
  double kv_used_share(uint32_t pool_blocks) const;
  double kv_waste_share() const;
  double kv_shared_share() const;  // of the used blocks, those in more than one sequence
  double wasted_tokens_per_sequence() const;
};

class StepTally {
 public:
  // REQUIRES: in order of steps.
  void add(const StepRecord& record);

  const StepUse& use() const { return use_; }
  // When the request's tokens came, on the engine's clock.
  std::vector<double> take_token_times(RequestId request);

 private:
  StepUse use_;
  std::unordered_map<RequestId, std::vector<double>> token_times_;
};

}  // namespace hearth
