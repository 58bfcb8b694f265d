// What a StepRunner keeps from step to step: token histories, biases, hidden states, and blocks
// that are moved. All of it changes only when no step has to run again (runtime/chain_guard.h).
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "engine/model/step_runner.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/queue.h"

namespace hearth {

uint64_t slot_bytes() {
  return 2 * sizeof(uint32_t) + sizeof(float) +
         StepExecutor::kHistoryTokens * sizeof(params::TokenCount) +
         StepExecutor::kMaxBiases * sizeof(params::TokenBias);
}

Status StepRunner::upload(const BufferSlice& to, std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  HEARTH_TRY(device_.chain().settle());
  HEARTH_ASSIGN(Buffer staging,
                device_.memory().allocate(
                    {.bytes = bytes.size(), .intent = MemoryIntent::kUpload, .name = "slot"}));
  std::memcpy(staging.mapped(), bytes.data(), bytes.size());
  HEARTH_TRY(staging.flush());
  HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device_, {.name = "slot"}));
  recorder.copy(staging.all().slice(0, bytes.size()), to);
  HEARTH_ASSIGN(CommandBuffer commands, recorder.finish());
  Queue& queue = device_.compute();
  HEARTH_ASSIGN(const TimelinePoint done, queue.submit(commands));
  queue.timeline().release_after(done.value, std::move(commands));
  queue.timeline().release_after(done.value, std::move(staging));
  return {};
}

Status StepRunner::set_history(uint32_t slot, std::span<const params::TokenCount> tokens) {
  tokens = tokens.first(std::min<size_t>(tokens.size(), kHistoryTokens));
  const auto length = static_cast<uint32_t>(tokens.size());
  HEARTH_TRY(upload(history_lengths_.slice(slot * sizeof(uint32_t), sizeof(uint32_t)),
                    std::as_bytes(std::span(&length, 1))));
  return upload(history_.slice(uint64_t{slot} * kHistoryTokens * sizeof(params::TokenCount),
                               tokens.size_bytes()),
                std::as_bytes(tokens));
}

Status StepRunner::set_biases(uint32_t slot, std::span<const params::TokenBias> biases) {
  if (biases.size() > kMaxBiases)
    return Error{ErrorKind::kInvalid, fmt::format("{} logit biases are more than the limit of {}",
                                                  biases.size(), kMaxBiases)};
  return upload(
      biases_.slice(uint64_t{slot} * kMaxBiases * sizeof(params::TokenBias), biases.size_bytes()),
      std::as_bytes(biases));
}

// Room for the sums of pooled rows, made by the first step that needs it.
Status StepRunner::allocate_pools() {
  if (pooled_.back()) return {};
  const StepLimits& limits = options_.limits;
  // Half of the sequences of a bucket may be padding.
  const uint64_t ranges = step_pools(
      {.rows = bucket_size(limits.rows), .sequences = 2 * std::bit_ceil(limits.most_sequences())});
  for (Buffer& pooled : pooled_) {
    HEARTH_ASSIGN(
        pooled, device_.memory().allocate({.bytes = ranges * model_.config().width * sizeof(float),
                                           .intent = MemoryIntent::kReadback,
                                           .name = "pooled"}));
  }
  return {};
}

// The pages of hidden states, and room for similarities.
Status StepRunner::allocate_hidden() {
  if (similarity_.back()) return {};
  HEARTH_ASSIGN(hidden_, HiddenStore::create(device_, model_.config().width, options_.slots,
                                             options_.limits.context + kStagedHidden));
  const uint64_t rows = std::bit_ceil(options_.limits.logit_rows);
  for (Buffer& similarity : similarity_) {
    HEARTH_ASSIGN(similarity, device_.memory().allocate(
                                  {.bytes = rows * params::kComparisonParts * sizeof(float),
                                   .intent = MemoryIntent::kReadback,
                                   .name = "similarities"}));
  }
  return {};
}

Status StepRunner::fork_blocks(std::span<const BlockMove> moves) {
  if (moves.empty()) return {};
  HEARTH_TRY(device_.chain().settle());
  return dealt_ ? dealt_->fork(moves) : forks_->move(moves);
}

Status StepRunner::swap_out(std::span<const BlockMove> moves) {
  if (moves.empty()) return {};
  HEARTH_TRY(device_.chain().settle());
  return dealt_ ? dealt_->swap_out(moves) : swaps_out_->move(moves);
}

Status StepRunner::swap_in(std::span<const BlockMove> moves) {
  if (moves.empty()) return {};
  HEARTH_TRY(device_.chain().settle());
  return dealt_ ? dealt_->swap_in(moves) : swaps_in_->move(moves);
}

Status StepRunner::reserve_hidden(uint32_t slot, uint32_t tokens) {
  // Steps in flight continue if there is room already, as for most tokens.
  if (hidden_ && tokens > 0 && tokens <= hidden_->reserved(slot)) return {};
  if (hidden_) HEARTH_TRY(device_.chain().settle());
  if (tokens == 0) {
    if (hidden_) hidden_->release(slot);
    return {};
  }
  HEARTH_TRY(allocate_hidden());
  return hidden_->reserve(slot, tokens);
}

}  // namespace hearth
