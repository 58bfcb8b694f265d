#include "engine/ranks/rank_loop.h"

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
  if (!is_first()) return link_.ready(link_.rank() - 1, Channel::kRows);
  return command.after <= ids_known_ ||
         (command.after == ids_known_ + 1 && link_.ready(link_.ranks() - 1, Channel::kIds));
}

Status RankLoop::read_ids_until(uint64_t step) {
  while (ids_known_ < step) {
    HEARTH_ASSIGN(const Message message, link_.receive(link_.ranks() - 1, Channel::kIds));
    HEARTH_ASSIGN(const IdsMessage ids, read_ids(message));
    ids_known_ = ids.step;
    for (const SlotId& sampled : ids.ids) {
      if (sampled.slot >= ids_.size()) ids_.resize(sampled.slot + 1);
      ids_[sampled.slot] = sampled.id;
    }
  }
  return {};
}

Status RankLoop::begin(RankCommand command) {
  Status status = failed_;
  if (is_first()) {
    HEARTH_TRY(read_ids_until(command.after));
    for (uint32_t& id : command.batch.ids) {
      if ((id & params::kSampledId) == 0) continue;
      const uint32_t slot = id & ~params::kSampledId;
      id = slot < ids_.size() ? ids_[slot] : 0;
    }
  } else {
    HEARTH_ASSIGN(Message message, link_.receive(link_.rank() - 1, Channel::kRows));
    HEARTH_ASSIGN(entering_, read_rows(std::move(message)));
    if (status.ok()) status = entering_.status;
    if (status.ok() && entering_.step != command.step)
      status = Error{ErrorKind::kInternal, "the ranks disagree about the order of steps"};
    command.batch.entering = entering_.rows;
  }
  InFlight& step = in_flight_.emplace_back();
  step.step = command.step;
  step.batch = std::move(command.batch);
  if (status.ok()) {
    Result<StepTicket> ticket = stage_.submit(step.batch);
    if (ticket.ok())
      step.ticket = *ticket;
    else
      status = ticket.error();
  }
  step.batch.entering = {};
  step.status = status;
  if (failed_.ok()) failed_ = status;
  return {};
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
  if (failed_.ok()) failed_ = status;
  if (!is_last())
    return link_.send(link_.rank() + 1, Channel::kRows,
                      write_rows(step.step, status, outcome.leaving));
  // The first rank waits for the ids; the engine can wait a little longer.
  HEARTH_TRY(link_.send(0, Channel::kIds, write_ids(step.step, step.batch, outcome)));
  return link_.send(0, Channel::kResults, write_results(step.step, status, outcome));
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
    case RankVerb::kStop:
      break;
  }
}

}  // namespace hearth
