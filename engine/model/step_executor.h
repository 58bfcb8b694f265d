// What runs steps, as the engine sees it: the model on a device (step_runner.h), or a stand-in that
// tests use where no driver loads. One thread. Steps run in the order of submission, and two may be
// under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/model/step_batch.h"
#include "engine/scheduling/batch_plan.h"
#include "params/sampling.h"
#include "runtime/result.h"
#include "runtime/timeline.h"

namespace hearth {

struct StepTicket {
  size_t copy = 0;  // of the step's inputs and outputs
  uint32_t logit_rows = 0;
  bool with_top = false;
  TimelinePoint done;
};

// What came of a step. The spans are valid until the step after next is submitted.
struct StepOutcome {
  std::span<const params::SamplingResult> sampled;  // by logit row
  std::span<const params::TokenLogprob> top;        // [logit rows, kMaxTopLogprobs], if asked for
};

class StepExecutor {
 public:
  static constexpr size_t kStepsUnderWay = 2;
  // Biases a slot can have; those of slot s begin at s * kMaxBiases.
  static constexpr uint32_t kMaxBiases = 512;
  // Distinct tokens of a slot that penalties can see. A list that is full counts on what is in it.
  static constexpr uint32_t kHistoryTokens = 4096;

  virtual ~StepExecutor() = default;

  // Begins a step. REQUIRES: fewer than kStepsUnderWay others are not yet waited for.
  virtual Result<StepTicket> submit(const StepBatch& batch) = 0;
  virtual Result<StepOutcome> wait(const StepTicket& ticket) = 0;

  // Block copies, before all steps submitted later.
  virtual Status fork_blocks(std::span<const BlockMove> moves) = 0;
  virtual Status swap_out(std::span<const BlockMove> moves) = 0;
  virtual Status swap_in(std::span<const BlockMove> moves) = 0;

  // What penalties and biases of a slot's sampling row refer to, from the next step on.
  virtual Status set_history(uint32_t slot, std::span<const params::TokenCount> tokens) = 0;
  virtual Status set_biases(uint32_t slot, std::span<const params::TokenBias> biases) = 0;
};

}  // namespace hearth
