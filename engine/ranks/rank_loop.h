// A rank at work: takes rank 0's commands in order and carries them out on its device. A step takes
// its hidden rows from the rank before, and hands them on to the next; the first rank starts from
// token ids instead, and the last one sends the sampled tokens back to rank 0.
//
// Two steps may be on the device at once, so that it does not idle while rows are copied. Rows that
// a stage leaves in memory shared with the next rank are not sent but announced; the step after
// next, which would overwrite them, waits until that rank says that it has read them.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/model/shared_rows.h"
#include "engine/model/step_executor.h"
#include "engine/ranks/link.h"
#include "engine/ranks/rank_command.h"
#include "engine/ranks/rank_times.h"

namespace hearth {

class RankLoop {
 public:
  // `stage` computes this rank's layers: StepBatch::entering and StepOutcome::leaving are what
  // crosses its ends. All arguments outlive the loop. REQUIRES: more than one rank.
  RankLoop(Link& link, StepExecutor& stage, const RankRows& shared = {})
      : link_(link), stage_(stage), shared_(shared) {}

  // Runs until rank 0 says stop; an error means that the link failed. A command that fails is
  // reported with the results of the next step, and so is every step after it.
  Status run();

 private:
  struct InFlight {
    uint64_t step = 0;
    StepBatch batch;
    Status status;  // an error: it was never submitted
    StepTicket ticket;
    bool reads_shared = false;  // its rows came in shared memory
    double submitted = 0;       // rank_clock()
  };

  bool is_first() const { return link_.rank() == 0; }
  bool is_last() const { return link_.rank() + 1 == link_.ranks(); }
  // Whether the step's ids or rows are here, and there is a place for those that leave.
  bool inputs_ready(const RankCommand& command);
  Status begin(RankCommand command);
  // Waits for the oldest step in flight and sends what came out of it.
  Status finish();
  void carry_out(const RankCommand& command);
  // Reads the ids of all steps up to `step`, and waits for them.
  Status read_ids_until(uint64_t step);
  Status read_entering(RankCommand& command, InFlight& step);
  bool must_wait_for_place(uint64_t step) const;
  // Waits until the next rank has read what `step` would overwrite.
  Status wait_for_place(uint64_t step);
  Status send_rows(const InFlight& step, const RowsHead& head, const Status& status,
                   const StepOutcome& outcome);

  Link& link_;
  StepExecutor& stage_;
  const RankRows shared_;
  std::deque<InFlight> in_flight_;
  std::deque<uint64_t> unread_;  // steps whose rows the next rank has not read, in shared memory
  Status failed_;                // the first failure of this rank
  std::vector<uint32_t> ids_;    // first rank: the last sampled id by slot
  uint64_t ids_known_ = 0;       // first rank: the newest step whose ids were read
  RowsMessage entering_;
  RankTimes times_;
  double inputs_known_ = 0;  // rank_clock() when the last inputs were known to the rank before
  double last_done_ = 0;     // rank_clock()
};

}  // namespace hearth
