// Runs the engine's steps on all ranks: the StepExecutor of rank 0. Tells every rank what to do, in
// order, and returns what the last one sampled. Computes nothing itself: rank 0's own layers are
// run by a RankLoop like those of the others. For the engine's thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/model/step_executor.h"
#include "engine/ranks/link.h"
#include "engine/ranks/parts_choice.h"
#include "engine/ranks/rank_command.h"

namespace hearth {

struct RankExecutorOptions {
  uint32_t slots = 0;
  uint64_t block_bytes = 0;  // of a KV block on all ranks together
  // A step is divided into at most this many parts, each with at least this many rows. Every part
  // reads all weights again, so this pays only where ranks compute at the same time, and a part is
  // limited by arithmetic.
  uint32_t parts = 1;
  uint32_t least_part_rows = 1;
  // Steps that only decode are divided if that was faster (parts_choice.h), whatever their size.
  bool measure_decoding = false;
  // Ranks meet within a step (shard_loop.h), so that all of them need all of it. REQUIRES: one
  // part.
  bool whole_steps = false;
};

class RankExecutor final : public StepExecutor {
 public:
  RankExecutor(Link& link, const RankExecutorOptions& options);
  // Tells the ranks to stop.
  ~RankExecutor() override;
  RankExecutor(const RankExecutor&) = delete;
  RankExecutor& operator=(const RankExecutor&) = delete;

  Result<StepTicket> submit(const StepBatch& batch) override;
  // A step that failed on any rank is an error, and so are all later ones: the ranks' KV blocks no
  // longer agree.
  Result<StepOutcome> wait(const StepTicket& ticket) override;
  // These fail only if the link has; what fails on a rank is reported by the next step.
  Status fork_blocks(std::span<const BlockMove> moves) override;
  Status swap_out(std::span<const BlockMove> moves) override;
  Status swap_in(std::span<const BlockMove> moves) override;
  // Does not measure time.
  Result<SwapTraffic> swap_traffic() override { return traffic_; }
  Status set_history(uint32_t slot, std::span<const params::TokenCount> tokens) override;
  Status set_biases(uint32_t slot, std::span<const params::TokenBias> biases) override;
  // Hidden states stay on the last rank, where the engine cannot see whether there is room for
  // them.
  Status reserve_hidden(uint32_t slot, uint32_t tokens) override;
  // Where the time of each rank went since the last call. Any thread, but one at a time.
  Result<std::vector<RankTimes>> times();

 private:
  struct Submitted {
    uint32_t parts = 0;
    uint32_t decoded_rows = 0;  // if it is a step whose time counts for the choice
    double submitted = 0;       // rank_clock()
    ResultsMessage results;
  };
  std::vector<StepBatch> divided(const StepBatch& batch, Submitted& step);
  // Notes when a step was done.
  void measure(const Submitted& step);
  uint32_t last_rank() const { return link_.ranks() - 1; }
  Status send_to_all(const Message& message);
  Status send_part(const StepBatch& part);

  Link& link_;
  const RankExecutorOptions options_;
  std::array<Submitted, kStepsInFlight> submitted_;
  size_t next_ = 0;
  uint64_t step_ = 0;                 // the last one's number; a part counts as a step
  std::vector<uint64_t> sampled_by_;  // by slot: the last step that sampled its id
  SwapTraffic traffic_;
  PartsChoice choice_;
  double last_done_ = 0;  // rank_clock() of the last step; 0: its time would not count
};

}  // namespace hearth
