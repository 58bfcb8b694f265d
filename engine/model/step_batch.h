// What one step computes, as plain data: built by the engine from a plan, or directly by commands
// that need logits. The vectors keep their capacity from step to step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "params/sampling.h"
#include "params/step.h"

namespace hearth {

struct StepBatch {
  // One id per row. With the bit params::kSampledId it is a slot, whose last sampled id is used.
  std::vector<uint32_t> ids;
  // Sequences own consecutive rows, in order, without gaps. The last `padding_sequences` of them
  // are padding rows that attend to another sequence's earlier keys; their results are discarded.
  std::vector<params::StepSequence> sequences;
  uint32_t padding_sequences = 0;
  std::vector<uint32_t> block_tables;  // of all sequences, one after the other
  // The rows whose logits are wanted, and how each is sampled. A default SamplingRow is not
  // sampled. REQUIRES: both have the same size.
  std::vector<uint32_t> logit_rows;
  std::vector<params::SamplingRow> sampling;
  uint32_t padding_rows = 0;  // computed in addition to the rows of the sequences

  void clear() {
    ids.clear();
    sequences.clear();
    padding_sequences = 0;
    block_tables.clear();
    logit_rows.clear();
    sampling.clear();
    padding_rows = 0;
  }

  // Reserves room, so that adding does not allocate.
  void reserve(size_t rows, size_t members, size_t blocks) {
    ids.reserve(rows);
    sequences.reserve(members);
    logit_rows.reserve(members);
    sampling.reserve(members);
    block_tables.reserve(blocks);
  }

  // Adds a sequence with `tokens`, the first of them at `first_position`.
  template <class Ids, class Blocks>
  void add_sequence(uint32_t first_position, const Ids& tokens, const Blocks& blocks) {
    sequences.push_back({.first_row = static_cast<uint32_t>(ids.size()),
                         .rows = static_cast<uint32_t>(std::size(tokens)),
                         .first_position = first_position,
                         .block_table = static_cast<uint32_t>(block_tables.size())});
    ids.insert(ids.end(), std::begin(tokens), std::end(tokens));
    block_tables.insert(block_tables.end(), std::begin(blocks), std::end(blocks));
  }

  // Adds a padding row that attends to the tokens of `member` before this step, if there are any.
  // REQUIRES: all padding rows have the same `member`, and no sequence is added after them.
  void add_padding(const params::StepSequence& member) {
    if (member.first_position > 0) {
      sequences.push_back({.first_row = rows(),
                           .rows = 1,
                           .first_position = member.first_position,
                           .block_table = member.block_table});
      ++padding_sequences;
    }
    ++padding_rows;
  }

  // The number of sequences that are not padding.
  size_t members() const { return sequences.size() - padding_sequences; }
  uint32_t rows() const { return static_cast<uint32_t>(ids.size()) + padding_rows; }
  uint32_t longest() const {
    uint32_t most = 0;
    for (const params::StepSequence& sequence : sequences) most = std::max(most, sequence.rows);
    return most;
  }
};

}  // namespace hearth
