// What one step computes, as plain data: made by the engine from a plan, or by hand by whoever
// wants logits. The vectors keep their capacity from step to step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "params/sampling.h"
#include "params/step.h"

namespace hearth {

struct StepBatch {
  // By row, a row a token. With params::kSampledId it is the slot whose sampled id is meant.
  std::vector<uint32_t> ids;
  // Sequences own neighbouring rows, in order, without gaps. The last `padding_sequences` of them
  // are rows of padding that see the keys before them, of whoever has them; nothing of theirs is
  // kept.
  std::vector<params::StepSequence> sequences;
  uint32_t padding_sequences = 0;
  std::vector<uint32_t> block_tables;  // of all sequences, one after the other
  // The rows whose logits are wanted, and how each is sampled: as many of both. A default
  // SamplingRow is not sampled.
  std::vector<uint32_t> logit_rows;
  std::vector<params::SamplingRow> sampling;
  uint32_t padding_rows = 0;  // computed beside the rows of the sequences

  void clear() {
    ids.clear();
    sequences.clear();
    padding_sequences = 0;
    block_tables.clear();
    logit_rows.clear();
    sampling.clear();
    padding_rows = 0;
  }

  // Room for as many, so that adding them allocates nothing.
  void reserve(size_t rows, size_t members, size_t blocks) {
    ids.reserve(rows);
    sequences.reserve(members);
    logit_rows.reserve(members);
    sampling.reserve(members);
    block_tables.reserve(blocks);
  }

  // Adds a sequence with these tokens, the first of them at `first_position`.
  template <class Ids, class Blocks>
  void add_sequence(uint32_t first_position, const Ids& tokens, const Blocks& blocks) {
    sequences.push_back({.first_row = static_cast<uint32_t>(ids.size()),
                         .rows = static_cast<uint32_t>(std::size(tokens)),
                         .first_position = first_position,
                         .block_table = static_cast<uint32_t>(block_tables.size())});
    ids.insert(ids.end(), std::begin(tokens), std::end(tokens));
    block_tables.insert(block_tables.end(), std::begin(blocks), std::end(blocks));
  }

  // Adds a row of padding that sees what `member` saw before this step, if that is anything.
  // REQUIRES: it is the same member for all of them, and no sequence is added after them.
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

  // Those that are no padding.
  size_t members() const { return sequences.size() - padding_sequences; }
  uint32_t rows() const { return static_cast<uint32_t>(ids.size()) + padding_rows; }
  uint32_t longest() const {
    uint32_t most = 0;
    for (const params::StepSequence& sequence : sequences) most = std::max(most, sequence.rows);
    return most;
  }
};

}  // namespace hearth
