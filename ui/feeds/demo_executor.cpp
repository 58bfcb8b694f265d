#include "ui/feeds/demo_executor.h"

#include <algorithm>
#include <thread>

namespace hearth {

// The made-up device does one thing after the other.
void DemoExecutor::busy(double seconds) {
  busy_until_ =
      std::max(busy_until_, EngineClock::now()) +
      std::chrono::duration_cast<EngineClock::duration>(std::chrono::duration<double>(seconds));
}

Status DemoExecutor::move(std::span<const BlockMove> moves) {
  busy(static_cast<double>(moves.size()) * pace_.block_move_seconds);
  return {};
}

Result<StepTicket> DemoExecutor::submit(const StepBatch& batch) {
  double seconds = pace_.step_seconds + pace_.prompt_row_seconds * batch.padding_rows;
  for (const params::StepSequence& sequence : batch.sequences)
    seconds +=
        sequence.rows > 1 ? pace_.prompt_row_seconds * sequence.rows : pace_.decode_row_seconds;
  busy(seconds);

  const size_t copy = next_copy_;
  next_copy_ = (next_copy_ + 1) % kStepsUnderWay;
  Copy& results = copies_[copy];
  results.done = busy_until_;
  results.sampled.clear();
  for (const params::SamplingRow& row : batch.sampling) {
    // Any function of what tells rows apart does.
    const uint64_t mixed =
        (uint64_t{row.seed_low} + 0x9e3779b97f4a7c15u * (row.counter + 1)) * 0xbf58476d1ce4e5b9u;
    results.sampled.push_back(
        {.id = static_cast<uint32_t>((mixed >> 33) % vocabulary_), .logprob = -1, .kept = 1});
  }
  return StepTicket{.copy = copy, .logit_rows = static_cast<uint32_t>(batch.sampling.size())};
}

Result<StepOutcome> DemoExecutor::wait(const StepTicket& ticket) {
  const Copy& results = copies_[ticket.copy];
  std::this_thread::sleep_until(results.done);
  return StepOutcome{.sampled = results.sampled};
}

}  // namespace hearth
