#include "engine/ranks/step_division.h"

#include <algorithm>

namespace hearth {
namespace {

// The part with the rows [begin, end).
StepBatch rows_between(const StepBatch& batch, uint32_t begin, uint32_t end) {
  StepBatch part;
  part.ids.assign(batch.ids.begin() + begin, batch.ids.begin() + end);
  for (const params::StepSequence& sequence : batch.sequences) {
    const uint32_t first = std::max(begin, sequence.first_row);
    const uint32_t last = std::min(end, sequence.first_row + sequence.rows);
    if (first >= last) continue;
    part.sequences.push_back(
        {.first_row = first - begin,
         .rows = last - first,
         .first_position = sequence.first_position + first - sequence.first_row,
         .block_table = sequence.block_table});
  }
  for (size_t i = 0; i < batch.logit_rows.size(); ++i) {
    const uint32_t row = batch.logit_rows[i];
    if (row >= begin && row < end) part.sample(row - begin, batch.sampling[i]);
  }
  // Tables and words are found by their offsets, so every part has them all.
  part.block_tables = batch.block_tables;
  if (!part.logit_rows.empty()) part.words = batch.words;
  return part;
}

}  // namespace

bool is_plain_step(const StepBatch& batch) {
  if (batch.padding_rows > 0 || !batch.ancestors.empty() || !batch.commits.empty() ||
      !batch.pools.empty() || !batch.kept.empty() || !batch.compared.empty())
    return false;
  if (!std::ranges::is_sorted(batch.logit_rows)) return false;
  return std::ranges::none_of(batch.sampling, [](const params::SamplingRow& row) {
    return (row.flags & params::kSamplingMix) != 0;
  });
}

std::vector<StepBatch> divide_step(const StepBatch& batch, uint32_t parts, uint32_t least_rows) {
  const uint32_t rows = batch.rows();
  parts = std::min(parts, rows / std::max(1u, least_rows));
  if (parts <= 1 || !is_plain_step(batch)) return {batch};
  std::vector<StepBatch> divided;
  for (uint32_t i = 0; i < parts; ++i)
    divided.push_back(rows_between(batch, static_cast<uint32_t>(uint64_t{rows} * i / parts),
                                   static_cast<uint32_t>(uint64_t{rows} * (i + 1) / parts)));
  return divided;
}

}  // namespace hearth
