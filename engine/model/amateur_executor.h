// Contrastive decoding: runs every step on two models, the amateur's first, so that rows of the
// expert can be mixed with the amateur's logits (docs/sampling.md). The amateur mirrors
// the expert: the same slots, blocks, block moves and tokens, so that one scheduler plans for both.
#pragma once

#include "engine/model/step_runner.h"

namespace hearth {

class AmateurExecutor final : public StepExecutor {
 public:
  // Both runners outlive this, which alone uses them. REQUIRES: the amateur was created with
  // amateur_options() of the expert, and no step has been submitted to either.
  AmateurExecutor(StepRunner& expert, StepRunner& amateur);

  // Rows that are mixed with another model's logits are mixed with those of the amateur's row of
  // the same number.
  Result<StepTicket> submit(const StepBatch& batch) override;
  Result<StepOutcome> wait(const StepTicket& ticket) override { return expert_.wait(ticket); }
  Status fork_blocks(std::span<const BlockMove> moves) override;
  Status swap_out(std::span<const BlockMove> moves) override;
  Status swap_in(std::span<const BlockMove> moves) override;
  Result<SwapTraffic> swap_traffic() override { return expert_.swap_traffic(); }
  Status set_history(uint32_t slot, std::span<const params::TokenCount> tokens) override {
    return expert_.set_history(slot, tokens);
  }
  Status set_biases(uint32_t slot, std::span<const params::TokenBias> biases) override {
    return expert_.set_biases(slot, biases);
  }
  Status reserve_hidden(uint32_t slot, uint32_t tokens) override {
    return expert_.reserve_hidden(slot, tokens);
  }

 private:
  StepRunner& expert_;
  StepRunner& amateur_;
  StepBatch batch_;  // the amateur's
};

// The amateur's runner has the same sizes, and reads the tokens that the expert samples.
StepRunnerOptions amateur_options(const StepRunner& expert);

}  // namespace hearth
