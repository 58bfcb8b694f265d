#include "engine/model/step_inputs.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "engine/model/step_executor.h"
#include "params/attention_work.h"
#include "params/hidden_rows.h"
#include "params/pool_rows.h"
#include "params/step.h"
#include "runtime/device.h"
#include "runtime/memory.h"

namespace hearth {
namespace {

template <class T>
void put(std::byte* base, uint64_t offset, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(base + offset, values.data(), values.size() * sizeof(T));
}

// Fills the rest of a list of `count` entries.
template <class T>
void pad(std::byte* base, uint64_t offset, size_t used, size_t count, const T& value) {
  T* const list = reinterpret_cast<T*>(base + offset);
  std::fill(list + used, list + count, value);
}

void write_hidden(std::byte* base, const StepBatch& batch, const StepBucket& bucket,
                  const StepLayout& layout) {
  auto* const places = reinterpret_cast<params::HiddenPlace*>(base + layout.kept);
  std::fill_n(places, bucket.rows, params::HiddenPlace{.position = params::kNotKept});
  for (const KeptRows& kept : batch.kept) {
    for (uint32_t i = 0; i < kept.rows; ++i)
      places[kept.first_row + i] = {.slot = kept.slot, .position = kept.first_position + i};
    places[kept.first_row].from = kept.copied_from;
    places[kept.first_row].to = kept.copied_to;
  }
  auto* const comparisons = reinterpret_cast<params::HiddenComparison*>(base + layout.compared);
  std::fill_n(comparisons, bucket.logit_rows, params::HiddenComparison{});
  for (const ComparedRow& row : batch.compared)
    comparisons[row.logit_row] = {
        .row = batch.logit_rows[row.logit_row], .slot = row.slot, .tokens = row.tokens};
}

}  // namespace

uint64_t step_word_bytes(const ModelConfig& config, const StepLimits& limits) {
  const uint64_t mask_words = divide_up(config.vocabulary, 32);
  const uint64_t commits = uint64_t{limits.rows} + limits.sequences;
  const uint64_t row_words = sizeof(params::SamplingStages) / sizeof(uint32_t) + 1 +
                             2 * uint64_t{StepExecutor::kMaxDryTokens};
  return (commits + limits.rows + limits.masks * mask_words + limits.logit_rows * row_words) *
         sizeof(uint32_t);
}

uint64_t step_input_bytes(const DeviceCaps& caps, const ModelConfig& config,
                          const StepLimits& limits, size_t windows) {
  uint64_t fixed = 0;
  for_step_buckets(limits, [&](StepBucket bucket) {
    bucket.extras = kStepCommits | kStepPools | kStepHidden;  // the largest layout
    const AttentionPlan plan =
        choose_attention(caps, step_attention_shape(config, limits.kv, bucket, limits.context),
                         limits.deterministic);
    fixed = std::max(
        fixed, step_layout(bucket, plan.capacity, windows, config.deal.is_divided()).block_tables);
  });
  // A dealt table comes twice, and that of a sequence with padding again for the padding.
  const uint64_t tables = config.deal.is_divided() ? 3 : 1;
  const uint64_t blocks = tables * divide_up(limits.context, params::kTokensPerBlock);
  return fixed + uint64_t{limits.most_sequences()} * blocks * sizeof(uint32_t) +
         step_word_bytes(config, limits);
}

std::vector<uint32_t> attention_windows(const ModelConfig& config) {
  std::vector<uint32_t> windows;
  for (uint32_t layer = 0; layer < config.layers; ++layer)
    if (std::ranges::find(windows, config.layer_window(layer)) == windows.end())
      windows.push_back(config.layer_window(layer));
  return windows;
}

Result<StepInputs> StepInputs::create(Device& device, uint64_t bytes, uint64_t word_bytes,
                                      const BlockDeal& deal) {
  StepInputs inputs;
  inputs.deal_ = deal;
  inputs.tables_end_ = bytes - word_bytes;
  inputs.word_bytes_ = word_bytes;
  for (Buffer& copy : inputs.copies_) {
    HEARTH_ASSIGN(copy, device.memory().allocate({.bytes = bytes,
                                                  .intent = MemoryIntent::kActivations,
                                                  .name = "step inputs",
                                                  .host_writes = true}));
  }
  return inputs;
}

Status StepInputs::write(size_t copy, const StepBatch& batch, const StepBucket& bucket,
                         const StepLayout& layout, const AttentionPlan& plan,
                         const std::vector<uint32_t>& windows) {
  const Buffer& buffer = copies_[copy];
  const DealtTables* const dealt = deal_.is_divided() ? &dealt_ : nullptr;
  if (dealt != nullptr) dealt_.deal(deal_, batch.sequences, batch.block_tables);
  const std::vector<uint32_t>& tables = dealt != nullptr ? dealt_.words() : batch.block_tables;
  const uint64_t bytes = layout.block_tables + tables.size() * sizeof(uint32_t);
  if (bytes > tables_end_ || batch.words.size() * sizeof(uint32_t) > word_bytes_)
    return Error{
        ErrorKind::kInvalid,
        fmt::format("a step with {} bytes of inputs and {} words does not fit into {} and "
                    "{}: too many tokens, commits or masks",
                    bytes, batch.words.size(), tables_end_, word_bytes_ / sizeof(uint32_t))};
  std::byte* const base = buffer.mapped();
  put(base, layout.ids, batch.ids);
  pad(base, layout.ids, batch.ids.size(), bucket.rows, 0u);
  uint32_t* const owners = reinterpret_cast<uint32_t*>(base + layout.row_sequences);
  std::fill(owners, owners + bucket.rows, params::kNoSequence);
  for (uint32_t i = 0; i < batch.members(); ++i)
    std::fill_n(owners + batch.sequences[i].first_row, batch.sequences[i].rows, i);
  if (bucket.trees) {
    put(base, layout.ancestors, batch.ancestors);
    pad(base, layout.ancestors, batch.ancestors.size(), bucket.rows, 0u);
  }
  put(base, layout.sequences, batch.sequences);
  pad(base, layout.sequences, batch.sequences.size(), bucket.sequences, params::StepSequence{});
  put(base, layout.logit_rows, batch.logit_rows);
  pad(base, layout.logit_rows, batch.logit_rows.size(), bucket.logit_rows, params::kNoSequence);
  put(base, layout.sampling, batch.sampling);
  pad(base, layout.sampling, batch.sampling.size(), bucket.logit_rows, params::SamplingRow{});
  if ((bucket.extras & kStepCommits) != 0) {
    put(base, layout.commits, batch.commits);
    pad(base, layout.commits, batch.commits.size(), bucket.sequences, params::HistoryCommit{});
  }
  if ((bucket.extras & kStepPools) != 0) {
    put(base, layout.pools, batch.pools);
    pad(base, layout.pools, batch.pools.size(), step_pools(bucket), params::PoolRange{});
  }
  if ((bucket.extras & kStepHidden) != 0) write_hidden(base, batch, bucket, layout);
  put(base, tables_end_, batch.words);
  for (size_t i = 0; i < windows.size(); ++i) {
    HEARTH_TRY(planner_.plan({.sequences = batch.sequences,
                              .members = batch.members(),
                              .window = windows[i],
                              .ancestors = batch.ancestors,
                              .dealt = dealt},
                             plan.tuning, plan.capacity));
    put(base, layout.attention[i].few, planner_.work().few);
    put(base, layout.attention[i].many, planner_.work().many);
    if (dealt == nullptr || !bucket.trees) continue;
    const std::vector<uint32_t>& ancestors = planner_.work().ancestors;
    put(base, layout.attention[i].ancestors, ancestors);
    pad(base, layout.attention[i].ancestors, ancestors.size(), bucket.rows, 0u);
  }
  put(base, layout.block_tables, tables);
  return buffer.flush();
}

}  // namespace hearth
