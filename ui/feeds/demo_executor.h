// Stands in for the GPU in `hearth dash --demo`: the engine and its scheduler are real, the tokens
// are made up, and a step takes as long as its rows say. Needs no model and no device.
#pragma once

#include <array>
#include <vector>

#include "engine/active_request.h"
#include "engine/model/step_executor.h"

namespace hearth {

struct DemoPace {
  double step_seconds = 0.006;        // whatever is in it
  double prompt_row_seconds = 60e-6;  // a row of a prompt
  double decode_row_seconds = 250e-6;
  double block_move_seconds = 100e-6;
};

class DemoExecutor final : public StepExecutor {
 public:
  DemoExecutor(uint32_t vocabulary, const DemoPace& pace) : vocabulary_(vocabulary), pace_(pace) {}

  Result<StepTicket> submit(const StepBatch& batch) override;
  // Sleeps until the step would be done.
  Result<StepOutcome> wait(const StepTicket& ticket) override;
  Status fork_blocks(std::span<const BlockMove> moves) override { return move(moves); }
  Status swap_out(std::span<const BlockMove> moves) override { return move(moves); }
  Status swap_in(std::span<const BlockMove> moves) override { return move(moves); }
  Status set_history(uint32_t, std::span<const params::TokenCount>) override { return {}; }
  Status set_biases(uint32_t, std::span<const params::TokenBias>) override { return {}; }

 private:
  struct Copy {
    std::vector<params::SamplingResult> sampled;
    EngineClock::time_point done;
  };

  Status move(std::span<const BlockMove> moves);
  void busy(double seconds);

  const uint32_t vocabulary_;
  const DemoPace pace_;
  EngineClock::time_point busy_until_ = {};
  std::array<Copy, kStepsUnderWay> copies_;
  size_t next_copy_ = 0;
};

}  // namespace hearth
