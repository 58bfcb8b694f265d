#include "engine/ranks/rank_loop.h"

#include <algorithm>
#include <utility>

#include "params/embed.h"

namespace hearth {

Status RankLoop::run() {
  for (;;) {
    // What is computed already goes out before this rank waits for anything.
    while (!in_flight_.empty() && !link_.ready(0, Channel::kCommands)) HEARTH_TRY(finish());
    HEARTH_ASSIGN(const Message message, link_.receive(0, Channel::kCommands));
    HEARTH_ASSIGN(RankCommand command, read_command(message));
    if (command.verb == RankVerb::kStop) {
      while (!in_flight_.empty()) HEARTH_TRY(finish());
      return {};
    }
    if (command.verb == RankVerb::kReport) {
      while (!in_flight_.empty()) HEARTH_TRY(finish());
      HEARTH_TRY(link_.send(0, Channel::kSetup, write_times(std::exchange(times_, {}))));
      continue;
    }
    if (command.verb != RankVerb::kStep) {
      carry_out(command);
      continue;
    }
    while (!in_flight_.empty() &&
           (in_flight_.size() == StepExecutor::kStepsInFlight || !inputs_ready(command)))
      HEARTH_TRY(finish());
    HEARTH_TRY(begin(std::move(command)));
  }
}

bool RankLoop::inputs_ready(const RankCommand& command) {
  if (must_wait_for_place(command.step) && !link_.ready(link_.rank() + 1, Channel::kRowsRead))
    return false;
  if (!is_first()) return link_.ready(link_.rank() - 1, Channel::kRows);
  return command.after <= ids_known_ ||
         (command.after == ids_known_ + 1 && link_.ready(link_.ranks() - 1, Channel::kIds));
}

Status RankLoop::read_ids_until(uint64_t step) {
  while (ids_known_ < step) {
    HEARTH_ASSIGN(const Message message, link_.receive(link_.ranks() - 1, Channel::kIds));
    HEARTH_ASSIGN(const IdsMessage ids, read_ids(message));
    ids_known_ = ids.step;
    inputs_known_ = ids.known;
    for (const SlotId& sampled : ids.ids) {
      if (sampled.slot >= ids_.size()) ids_.resize(sampled.slot + 1);
      ids_[sampled.slot] = sampled.id;
    }
  }
  return {};
}

bool RankLoop::must_wait_for_place(uint64_t step) const {
  return !unread_.empty() && unread_.front() + SharedRows::kPlaces <= step;
}

Status RankLoop::wait_for_place(uint64_t step) {
  while (must_wait_for_place(step)) {
    HEARTH_ASSIGN(const Message message, link_.receive(link_.rank() + 1, Channel::kRowsRead));
    HEARTH_ASSIGN(const uint64_t read, read_rows_read(message));
    while (!unread_.empty() && unread_.front() <= read) unread_.pop_front();
  }
  return {};
}

Status RankLoop::read_entering(RankCommand& command, InFlight& step) {
  HEARTH_ASSIGN(Message message, link_.receive(link_.rank() - 1, Channel::kRows));
  HEARTH_ASSIGN(entering_, read_rows(std::move(message)));
  inputs_known_ = entering_.known;
  step.reads_shared = entering_.place.has_value();
  if (step.reads_shared && shared_.entering == nullptr)
    return Error{ErrorKind::kInternal, "a rank announced rows in memory that it does not share"};
  if (!step.status.ok()) return {};
  step.status = entering_.status;
  if (step.status.ok() && entering_.step != command.step)
    step.status = Error{ErrorKind::kInternal, "the ranks disagree about the order of steps"};
  command.batch.entering = step.reads_shared
                               ? shared_.entering->rows(*entering_.place, entering_.floats)
                               : entering_.rows;
  return {};
}

Status RankLoop::begin(RankCommand command) {
  InFlight step{.step = command.step, .batch = {}, .status = failed_, .ticket = {}};
  const double waiting = rank_clock();
  inputs_known_ = 0;
  HEARTH_TRY(wait_for_place(command.step));
  if (is_first()) {
    HEARTH_TRY(read_ids_until(command.after));
    for (uint32_t& id : command.batch.ids) {
      if ((id & params::kSampledId) == 0) continue;
      const uint32_t slot = id & ~params::kSampledId;
      id = slot < ids_.size() ? ids_[slot] : 0;
    }
  } else {
    HEARTH_TRY(read_entering(command, step));
  }
  const double arrived = rank_clock();
  step.batch = std::move(command.batch);
  if (step.status.ok()) {
    Result<StepTicket> ticket = stage_.submit(step.batch);
    if (ticket.ok())
      step.ticket = *ticket;
    else
      step.status = ticket.error();
  }
  step.batch.entering = {};
  step.submitted = rank_clock();
  // Zero: the step needed nothing from another rank.
  if (inputs_known_ > 0) times_.arrival_seconds += arrived - std::max(waiting, inputs_known_);
  times_.submit_seconds += step.submitted - arrived;
  ++times_.steps;
  if (step.reads_shared) ++times_.shared_steps;
  if (failed_.ok()) failed_ = step.status;
  in_flight_.push_back(std::move(step));
  return {};
}

Status RankLoop::send_rows(const InFlight& step, const RowsHead& head, const Status& status,
                           const StepOutcome& outcome) {
  const uint32_t next = link_.rank() + 1;
  if (status.ok() && shared_.leaving != nullptr) {
    if (const auto place = shared_.leaving->place_of(outcome.leaving)) {
      unread_.push_back(step.step);
      return link_.send(next, Channel::kRows,
                        write_rows_place(head, *place, outcome.leaving.size()));
    }
  }
  return link_.send(next, Channel::kRows, write_rows(head, status, outcome.leaving));
}

Status RankLoop::finish() {
  const InFlight step = std::move(in_flight_.front());
  in_flight_.pop_front();
  Status status = step.status;
  StepOutcome outcome;
  if (status.ok()) {
    Result<StepOutcome> waited = stage_.wait(step.ticket);
    if (waited.ok())
      outcome = *waited;
    else
      status = waited.error();
  }
  const RowsHead head{.step = step.step, .known = rank_clock()};
  times_.device_seconds += head.known - std::max(step.submitted, last_done_);
  last_done_ = head.known;
  if (failed_.ok()) failed_ = status;
  if (!is_last()) {
    HEARTH_TRY(send_rows(step, head, status, outcome));
  } else {
    // The first rank waits for the ids; the engine can wait a little longer.
    HEARTH_TRY(link_.send(0, Channel::kIds, write_ids(head, step.batch, outcome)));
    HEARTH_TRY(link_.send(0, Channel::kResults, write_results(step.step, status, outcome)));
  }
  if (!step.reads_shared) return {};
  return link_.send(link_.rank() - 1, Channel::kRowsRead, write_rows_read(step.step));
}

void RankLoop::carry_out(const RankCommand& command) {
  if (!failed_.ok()) return;
  switch (command.verb) {
    case RankVerb::kForkBlocks:
      failed_ = stage_.fork_blocks(command.moves);
      break;
    case RankVerb::kSwapOut:
      failed_ = stage_.swap_out(command.moves);
      break;
    case RankVerb::kSwapIn:
      failed_ = stage_.swap_in(command.moves);
      break;
    case RankVerb::kSetHistory:
      failed_ = stage_.set_history(command.slot, command.history);
      break;
    case RankVerb::kSetBiases:
      failed_ = stage_.set_biases(command.slot, command.biases);
      break;
    case RankVerb::kStep:
    case RankVerb::kReport:
    case RankVerb::kStop:
      break;
  }
}

}  // namespace hearth
