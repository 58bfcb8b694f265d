// A rank at work: takes rank 0's commands in order and carries them out on its device. A step takes
// its hidden rows from the rank before, and hands them on to the next; the first rank starts from
// token ids instead, and the last one sends the sampled tokens back to rank 0.
//
// Two steps may be on the device at once, so that it does not idle while rows are copied.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/model/step_executor.h"
#include "engine/ranks/link.h"
#include "engine/ranks/rank_command.h"

namespace hearth {

class RankLoop {
 public:
  // `stage` computes this rank's layers: StepBatch::entering and StepOutcome::leaving are what
  // crosses its ends. Both outlive the loop. REQUIRES: more than one rank.
  RankLoop(Link& link, StepExecutor& stage) : link_(link), stage_(stage) {}

  // Runs until rank 0 says stop; an error means that the link failed. A command that fails is
  // reported with the results of the next step, and so is every step after it.
  Status run();

 private:
  struct InFlight {
    uint64_t step = 0;
    StepBatch batch;
    Status status;  // an error: it was never submitted
    StepTicket ticket;
  };

  bool is_first() const { return link_.rank() == 0; }
  bool is_last() const { return link_.rank() + 1 == link_.ranks(); }
  // Whether the step's ids or rows are here.
  bool inputs_ready(const RankCommand& command);
  Status begin(RankCommand command);
  // Waits for the oldest step in flight and sends what came out of it.
  Status finish();
  void carry_out(const RankCommand& command);
  // Reads the ids of all steps up to `step`, and waits for them.
  Status read_ids_until(uint64_t step);

  Link& link_;
  StepExecutor& stage_;
  std::deque<InFlight> in_flight_;
  Status failed_;              // the first failure of this rank
  std::vector<uint32_t> ids_;  // first rank: the last sampled id by slot
  uint64_t ids_known_ = 0;     // first rank: the newest step whose ids were read
  RowsMessage entering_;
};

}  // namespace hearth
