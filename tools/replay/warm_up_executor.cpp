#include "tools/replay/warm_up_executor.h"

#include <utility>

namespace hearth {

Result<StepTicket> WarmUpExecutor::submit(const StepBatch& batch) {
  const size_t index = next_step_;
  Step& step = steps_[index];
  HEARTH_ASSIGN(step.on_device, prepare_(batch));
  if (step.on_device) {
    HEARTH_ASSIGN(step.ticket, device_.submit(batch));
  } else {
    step.sampled.assign(batch.sampling.size(), {});
  }
  next_step_ = (next_step_ + 1) % kStepsInFlight;
  return StepTicket{.copy = index, .logit_rows = static_cast<uint32_t>(batch.sampling.size())};
}

Result<StepOutcome> WarmUpExecutor::wait(const StepTicket& ticket) {
  const Step& step = steps_[ticket.copy];
  if (step.on_device) return device_.wait(step.ticket);
  return StepOutcome{.sampled = step.sampled};
}

Status WarmUpExecutor::fork_blocks(std::span<const BlockMove> moves) {
  return std::exchange(forked_, true) ? Status() : device_.fork_blocks(moves);
}

Status WarmUpExecutor::swap_out(std::span<const BlockMove> moves) {
  return std::exchange(swapped_out_, true) ? Status() : device_.swap_out(moves);
}

Status WarmUpExecutor::swap_in(std::span<const BlockMove> moves) {
  return std::exchange(swapped_in_, true) ? Status() : device_.swap_in(moves);
}

}  // namespace hearth
