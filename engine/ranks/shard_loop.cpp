#include "engine/ranks/shard_loop.h"

#include <utility>

#include "params/embed.h"

namespace hearth {

Status ShardLoop::run() {
  for (;;) {
    HEARTH_ASSIGN(const Message message, link_.receive(0, Channel::kCommands));
    HEARTH_ASSIGN(RankCommand command, read_command(message));
    if (command.verb == RankVerb::kStop) return {};
    if (command.verb == RankVerb::kStep)
      HEARTH_TRY(run_step(std::move(command)));
    else if (command.verb == RankVerb::kReport)
      HEARTH_TRY(link_.send(0, Channel::kSetup, write_times(std::exchange(times_, {}))));
    else
      carry_out(command);
  }
}

Status ShardLoop::read_ids_until(uint64_t step) {
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

Result<StepOutcome> ShardLoop::compute(const StepBatch& batch) {
  HEARTH_TRY(failed_);
  const double begin = rank_clock();
  HEARTH_ASSIGN(const StepTicket ticket, share_.submit(batch));
  const double submitted = rank_clock();
  Result<StepOutcome> outcome = share_.wait(ticket);
  ++times_.steps;
  times_.submit_seconds += submitted - begin;
  times_.device_seconds += rank_clock() - submitted;
  return outcome;
}

Status ShardLoop::run_step(RankCommand command) {
  const double begin = rank_clock();
  HEARTH_TRY(read_ids_until(command.after));
  times_.arrival_seconds += rank_clock() - begin;
  StepBatch& batch = command.batch;
  for (uint32_t& id : batch.ids) {
    if ((id & params::kSampledId) == 0) continue;
    const uint32_t slot = id & ~params::kSampledId;
    id = slot < ids_.size() ? ids_[slot] : 0;
  }
  const Result<StepOutcome> computed = compute(batch);
  const Status status = computed.ok() ? Status() : Status(computed.error());
  if (!computed.ok()) {
    failed_ = computed.error();
    exchange_.give_up(computed.error());
  }
  if (!is_last()) return {};
  const StepOutcome outcome = computed.ok() ? *computed : StepOutcome();
  const Message ids = write_ids({.step = command.step}, batch, outcome);
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank)
    HEARTH_TRY(link_.send(rank, Channel::kIds, ids));
  return link_.send(0, Channel::kResults, write_results(command.step, status, outcome));
}

void ShardLoop::carry_out(const RankCommand& command) {
  if (!failed_.ok()) return;
  switch (command.verb) {
    case RankVerb::kForkBlocks:
      failed_ = share_.fork_blocks(command.moves);
      break;
    case RankVerb::kSwapOut:
      failed_ = share_.swap_out(command.moves);
      break;
    case RankVerb::kSwapIn:
      failed_ = share_.swap_in(command.moves);
      break;
    case RankVerb::kSetHistory:
      failed_ = share_.set_history(command.slot, command.history);
      break;
    case RankVerb::kSetBiases:
      failed_ = share_.set_biases(command.slot, command.biases);
      break;
    case RankVerb::kStep:
    case RankVerb::kReport:
    case RankVerb::kStop:
      break;
  }
  // Others may be waiting for blocks of this rank, and no step need follow.
  if (!failed_.ok()) exchange_.give_up(failed_.error());
}

}  // namespace hearth
