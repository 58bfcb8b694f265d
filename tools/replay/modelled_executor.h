// Stands in for the GPU: the engine and its scheduler are real, steps take as long as a modelled
// device would (modelled_device.h), and the tokens are made up. Needs no model and no Vulkan.
//
// Used by the engine thread alone.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/step_executor.h"
#include "engine/time_source.h"
#include "tools/replay/modelled_device.h"

namespace hearth {

class ModelledExecutor final : public StepExecutor {
 public:
  // Steps end by `time`: really, or on a virtual clock at once. REQUIRES: it outlives the executor,
  // and the engine runs on the same.
  explicit ModelledExecutor(ModelledDevice device, TimeSource& time = real_time())
      : device_(std::move(device)), time_(time) {}

  Result<StepTicket> submit(const StepBatch& batch) override;
  // Sleeps until the step would be done.
  Result<StepOutcome> wait(const StepTicket& ticket) override;
  Status fork_blocks(std::span<const BlockMove> moves) override;
  Status swap_out(std::span<const BlockMove> moves) override;
  Status swap_in(std::span<const BlockMove> moves) override;
  Result<SwapTraffic> swap_traffic() override { return traffic_; }
  Status set_history(uint32_t, std::span<const params::TokenCount>) override { return {}; }
  Status set_biases(uint32_t, std::span<const params::TokenBias>) override { return {}; }

 private:
  struct Step {
    std::vector<params::SamplingResult> sampled;
    std::vector<params::TokenLogprob> top;  // [logit rows, kMaxTopLogprobs]; empty if not requested
    EngineClock::time_point done;
  };

  void occupy(double seconds);
  // Makes up the most probable tokens of the rows that report them.
  void fill_top(const StepBatch& batch, Step& step) const;
  // Returns the bytes of the blocks.
  uint64_t swap(std::span<const BlockMove> moves);

  const ModelledDevice device_;
  TimeSource& time_;
  EngineClock::time_point busy_until_ = {};  // the device does one thing after the other
  std::array<Step, kStepsInFlight> steps_;
  size_t next_step_ = 0;
  SwapTraffic traffic_;
};

}  // namespace hearth
