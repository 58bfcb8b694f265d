// Runs steps for the engine: the model on a device (step_runner.h), or a stand-in for tests without
// a driver. For one thread. Steps run in the order of submission, and two may be in flight.
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
  size_t copy = 0;  // which copy of the step's inputs and outputs it uses
  uint32_t rows = 0, logit_rows = 0;
  bool with_top = false;
  uint32_t pools = 0;
  bool with_mirostat = false;
  bool with_similarity = false;
  bool judged = false;  // the device waits until the host has read the outcome
  TimelinePoint done;
};

// The results of a step. The spans are valid until the step after next is submitted.
struct StepOutcome {
  std::span<const params::SamplingResult> sampled;  // per logit row
  std::span<const params::TokenLogprob> top;        // [logit rows, kMaxTopLogprobs], if requested
  std::span<const float> pooled;                    // [pools, model width], if there are any
  std::span<const float> mirostat;  // per logit row, mu after the step, if a row has stages
  // [logit rows, kComparisonParts], if a row is compared: the largest part is its similarity.
  std::span<const float> similarity = {};
  // [rows, width]: the hidden rows, if the layers do not end with the model's last (engine/ranks).
  std::span<const float> leaving = {};
};

// What swaps have moved since the executor was created.
struct SwapTraffic {
  uint64_t out_bytes = 0, in_bytes = 0;
  double seconds = 0;  // the device's time for both directions; 0: not measured
};

class StepExecutor {
 public:
  static constexpr size_t kStepsInFlight = 2;
  // Most biases per slot; those of slot s begin at s * kMaxBiases.
  static constexpr uint32_t kMaxBiases = 512;
  // Most distinct tokens per slot that penalties consider. A full list takes no new tokens but
  // keeps counting those it has.
  static constexpr uint32_t kHistoryTokens = 4096;
  // Most tokens with a DRY penalty per logit row.
  static constexpr uint32_t kMaxDryTokens = 256;

  virtual ~StepExecutor() = default;

  // Submits a step. REQUIRES: fewer than kStepsInFlight others are in flight.
  virtual Result<StepTicket> submit(const StepBatch& batch) = 0;
  virtual Result<StepOutcome> wait(const StepTicket& ticket) = 0;

  // Copy blocks, before all steps and moves submitted later. REQUIRES, for forks: the moves are
  // independent (independent_moves()).
  virtual Status fork_blocks(std::span<const BlockMove> moves) = 0;
  virtual Status swap_out(std::span<const BlockMove> moves) = 0;
  virtual Status swap_in(std::span<const BlockMove> moves) = 0;
  // Waits for swaps in flight.
  virtual Result<SwapTraffic> swap_traffic() { return SwapTraffic{}; }

  // Sets the token history and the biases that a slot's sampling uses from the next step on.
  virtual Status set_history(uint32_t slot, std::span<const params::TokenCount> tokens) = 0;
  virtual Status set_biases(uint32_t slot, std::span<const params::TokenBias> biases) = 0;

  // Makes room for the hidden states of the first `tokens` tokens of the sequence in a slot, in
  // addition to those it has (StepBatch::kept). 0: the slot has a new sequence, and its room is
  // given back.
  virtual Status reserve_hidden([[maybe_unused]] uint32_t slot, uint32_t tokens) {
    if (tokens == 0) return {};
    return Error{ErrorKind::kUnsupported, "this executor keeps no hidden states"};
  }
};

}  // namespace hearth
