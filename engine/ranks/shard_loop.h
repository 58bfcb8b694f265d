// A rank at work, if ranks meet within a step: takes rank 0's commands in order and carries them
// out on its device. All ranks run the same step at the same time, from token ids on, and meet
// within it (link_exchange.h). The last one has all logits, samples, and tells the others the ids.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/step_executor.h"
#include "engine/ranks/link.h"
#include "engine/ranks/link_exchange.h"
#include "engine/ranks/rank_command.h"
#include "engine/ranks/rank_times.h"

namespace hearth {

class ShardLoop {
 public:
  // `share` computes this rank's part of a step, and meets the others through `exchange`. All
  // outlive the loop. REQUIRES: more than one rank.
  ShardLoop(Link& link, StepExecutor& share, LinkExchange& exchange)
      : link_(link), share_(share), exchange_(exchange) {}

  // Runs until rank 0 says stop; an error means that the link failed. A command that fails on any
  // rank is reported with the results of the next step, and so is every step after it.
  Status run();

 private:
  bool is_last() const { return link_.rank() + 1 == link_.ranks(); }
  Status run_step(RankCommand command);
  Result<StepOutcome> compute(const StepBatch& batch);
  void carry_out(const RankCommand& command);
  // Reads the ids of all steps up to `step`, and waits for them.
  Status read_ids_until(uint64_t step);

  Link& link_;
  StepExecutor& share_;
  LinkExchange& exchange_;
  Status failed_;              // the first failure of this rank
  std::vector<uint32_t> ids_;  // the last sampled id by slot
  uint64_t ids_known_ = 0;     // the newest step whose ids were read
  RankTimes times_;            // submitting a step includes all of it but its last segment
};

}  // namespace hearth
