#include "engine/model/amateur_executor.h"

#include <algorithm>

#include "engine/sampling/sampler.h"

namespace hearth {

StepRunnerOptions amateur_options(const StepRunner& expert) {
  StepRunnerOptions options = expert.options();
  options.other_logits = nullptr;
  options.sampled_ids = &expert.sampled_ids();
  return options;
}

AmateurExecutor::AmateurExecutor(StepRunner& expert, StepRunner& amateur)
    : expert_(expert), amateur_(amateur) {
  expert_.set_other_logits(amateur_.logits());
}

Result<StepTicket> AmateurExecutor::submit(const StepBatch& batch) {
  batch_.ids = batch.ids;
  batch_.sequences = batch.sequences;
  batch_.padding_sequences = batch.padding_sequences;
  batch_.padding_rows = batch.padding_rows;
  batch_.block_tables = batch.block_tables;
  batch_.ancestors = batch.ancestors;
  batch_.logit_rows.clear();
  if (std::ranges::any_of(batch.sampling, is_mixed)) batch_.logit_rows = batch.logit_rows;
  batch_.sampling.assign(batch_.logit_rows.size(), {});  // logits only
  HEARTH_TRY(amateur_.submit(batch_));
  return expert_.submit(batch);
}

Status AmateurExecutor::fork_blocks(std::span<const BlockMove> moves) {
  HEARTH_TRY(amateur_.fork_blocks(moves));
  return expert_.fork_blocks(moves);
}

Status AmateurExecutor::swap_out(std::span<const BlockMove> moves) {
  HEARTH_TRY(amateur_.swap_out(moves));
  return expert_.swap_out(moves);
}

Status AmateurExecutor::swap_in(std::span<const BlockMove> moves) {
  HEARTH_TRY(amateur_.swap_in(moves));
  return expert_.swap_in(moves);
}

}  // namespace hearth
