#include "tools/replay/modelled_executor.h"

#include <algorithm>
#include <chrono>

namespace hearth {

void ModelledExecutor::occupy(double seconds) {
  // Rounded to nanoseconds, so that sums are the same on every machine.
  const auto duration =
      std::chrono::round<EngineClock::duration>(std::chrono::duration<double>(seconds));
  busy_until_ = std::max(busy_until_, time_.now()) + duration;
}

Status ModelledExecutor::fork_blocks(std::span<const BlockMove> moves) {
  occupy(copy_seconds(device_, moves.size()));
  return {};
}

uint64_t ModelledExecutor::swap(std::span<const BlockMove> moves) {
  const double seconds = swap_seconds(device_, moves.size());
  occupy(seconds);
  traffic_.seconds += seconds;
  return static_cast<uint64_t>(static_cast<double>(moves.size()) * device_.kv_bytes_per_block());
}

Status ModelledExecutor::swap_out(std::span<const BlockMove> moves) {
  traffic_.out_bytes += swap(moves);
  return {};
}

Status ModelledExecutor::swap_in(std::span<const BlockMove> moves) {
  traffic_.in_bytes += swap(moves);
  return {};
}

void ModelledExecutor::fill_top(const StepBatch& batch, Step& step) const {
  step.top.clear();
  if (std::ranges::all_of(batch.sampling,
                          [](const params::SamplingRow& row) { return row.top_logprobs == 0; }))
    return;
  step.top.resize(batch.sampling.size() * params::kMaxTopLogprobs,
                  {.id = params::kNoToken, .logprob = 0});
  for (size_t row = 0; row < batch.sampling.size(); ++row)
    for (uint32_t i = 0; i < batch.sampling[row].top_logprobs; ++i)
      step.top[row * params::kMaxTopLogprobs + i] = {
          .id = (step.sampled[row].id + i) % device_.vocabulary,
          .logprob = step.sampled[row].logprob - static_cast<float>(i)};
}

Result<StepTicket> ModelledExecutor::submit(const StepBatch& batch) {
  occupy(step_seconds(device_, step_work(batch)));
  const size_t index = next_step_;
  next_step_ = (next_step_ + 1) % kStepsInFlight;
  Step& step = steps_[index];
  step.done = busy_until_;
  step.sampled.clear();
  for (const params::SamplingRow& row : batch.sampling) {
    // Any function of seed and position would be as good.
    const uint64_t mixed =
        (uint64_t{row.seed_low} + 0x9e3779b97f4a7c15u * (row.counter + 1)) * 0xbf58476d1ce4e5b9u;
    step.sampled.push_back({.id = static_cast<uint32_t>((mixed >> 33) % device_.vocabulary),
                            .logprob = -1,
                            .kept = 1});
  }
  fill_top(batch, step);
  return StepTicket{.copy = index, .logit_rows = static_cast<uint32_t>(batch.sampling.size())};
}

Result<StepOutcome> ModelledExecutor::wait(const StepTicket& ticket) {
  const Step& step = steps_[ticket.copy];
  time_.sleep_until(step.done);
  return StepOutcome{.sampled = step.sampled, .top = step.top};
}

}  // namespace hearth
