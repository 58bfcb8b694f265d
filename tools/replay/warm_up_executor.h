// Warms a device up without computing a whole trace. Buckets are recorded and kernels compiled when
// they are first needed, and that time must not be charged to a policy. An engine that replays a
// trace over this executor meets every bucket that the trace needs; the device gets ready for each,
// but computes only the steps that it has to. All other steps end at once with made-up tokens.
//
// Used by one engine thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/model/step_executor.h"

namespace hearth {

class WarmUpExecutor final : public StepExecutor {
 public:
  // Gets the device ready for a step. True if the step must be computed, too.
  using Prepare = std::function<Result<bool>(const StepBatch& batch)>;

  // REQUIRES: the device outlives this.
  WarmUpExecutor(StepExecutor& device, Prepare prepare)
      : device_(device), prepare_(std::move(prepare)) {}

  Result<StepTicket> submit(const StepBatch& batch) override;
  Result<StepOutcome> wait(const StepTicket& ticket) override;
  // Blocks are moved once each way.
  Status fork_blocks(std::span<const BlockMove> moves) override;
  Status swap_out(std::span<const BlockMove> moves) override;
  Status swap_in(std::span<const BlockMove> moves) override;
  Status set_history(uint32_t slot, std::span<const params::TokenCount> tokens) override {
    return device_.set_history(slot, tokens);
  }
  Status set_biases(uint32_t slot, std::span<const params::TokenBias> biases) override {
    return device_.set_biases(slot, biases);
  }

 private:
  struct Step {
    bool on_device = false;
    StepTicket ticket;                            // the device's
    std::vector<params::SamplingResult> sampled;  // made up, if the step was not computed
  };

  StepExecutor& device_;
  Prepare prepare_;
  bool forked_ = false, swapped_out_ = false, swapped_in_ = false;
  std::array<Step, kStepsInFlight> steps_;
  size_t next_step_ = 0;
};

}  // namespace hearth
