// What one step computes, as plain data: built by the engine from a plan, or directly by commands
// that need logits. The vectors keep their capacity from step to step. README.md in this folder
// says how proposals are verified.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "params/hidden_rows.h"
#include "params/pool_rows.h"
#include "params/sampling.h"
#include "params/step.h"

namespace hearth {

// A tree row's parent that is not in the tree: the token before the tree.
inline constexpr uint32_t kTreeRoot = 0xffffffff;
inline constexpr uint32_t kMaxTreeRows = 32;  // per sequence

// Rows whose hidden states after the final norm are kept, as those of neighbouring tokens of the
// sequence in a slot. A hidden state that was kept by an earlier step is copied to another
// position.
struct KeptRows {
  uint32_t first_row = 0, rows = 0;
  uint32_t slot = 0, first_position = 0;
  uint32_t copied_from = 0, copied_to = 0;  // copied_from = 0: none
};

// Where the hidden states of candidates for the token after the first `tokens` are kept: beyond the
// text, and not where those of the candidates one token before or after are, of which one is copied
// into the text meanwhile.
constexpr uint32_t staged_hidden(uint32_t tokens) {
  return tokens + 1 + (tokens % 2) * (kMaxTreeRows + 1);
}
// The positions beyond a text that are used for this.
inline constexpr uint32_t kStagedHidden = 2 * (kMaxTreeRows + 1);

// A logit row whose hidden state is compared with the kept ones of a slot's first `tokens` tokens,
// those that this step keeps included.
struct ComparedRow {
  uint32_t logit_row = 0;
  uint32_t slot = 0, tokens = 0;
};

struct StepBatch {
  // One id per row, or an unread token (scheduling/unread_token.h): a place whose last sampled id
  // is used.
  std::vector<uint32_t> ids;
  // Sequences own consecutive rows, in order, without gaps. The last `padding_sequences` of them
  // are padding rows that attend to another sequence's earlier keys; their results are discarded.
  std::vector<params::StepSequence> sequences;
  uint32_t padding_sequences = 0;
  std::vector<uint32_t> block_tables;  // of all sequences, one after the other
  // Per row, for rows in trees: which tree rows of its sequence are on its path, itself included,
  // as bits (shaders/common/tree_rows.glsl). 0, or missing at the end: an ordinary row.
  std::vector<uint32_t> ancestors;
  // The rows whose logits are wanted, and how each is sampled. A default SamplingRow is not
  // sampled. A sequence may have any number of them. REQUIRES: both have the same size; at most one
  // sampled row has any given id_index, except kNoSlot.
  std::vector<uint32_t> logit_rows;
  std::vector<params::SamplingRow> sampling;
  // Tokens to be counted in slots' histories before the step samples. No slot is listed twice.
  std::vector<params::HistoryCommit> commits;
  // Ranges of rows whose hidden states after the final norm are added up, one sum per range.
  std::vector<params::PoolRange> pools;
  // Hidden states to be kept, and to be compared; StepExecutor::reserve_hidden() made room for
  // them. No row, position or logit row is listed twice, and no position that is copied is written.
  std::vector<KeptRows> kept;
  std::vector<ComparedRow> compared;
  // What commits and sampling rows refer to: tokens, proposals and masks.
  std::vector<uint32_t> words;
  uint32_t padding_rows = 0;  // computed in addition to the rows of the sequences
  // For layers that do not begin with the model's first (engine/ranks): the hidden rows, [rows,
  // width], that the layers before computed.
  std::span<const float> entering;

  void clear() {
    ids.clear();
    sequences.clear();
    padding_sequences = 0;
    block_tables.clear();
    ancestors.clear();
    logit_rows.clear();
    sampling.clear();
    commits.clear();
    pools.clear();
    kept.clear();
    compared.clear();
    words.clear();
    padding_rows = 0;
    entering = {};
  }

  // Reserves room, so that adding does not allocate.
  void reserve(size_t rows, size_t members, size_t blocks) {
    ids.reserve(rows);
    sequences.reserve(members);
    logit_rows.reserve(members);
    sampling.reserve(members);
    block_tables.reserve(blocks);
  }

  // Adds a sequence with `tokens`, the first of them at `first_position`. With `parents`, the last
  // of them are a tree: parents[i] is the index of the i-th tree row's parent, an earlier tree row,
  // or kTreeRoot. A tree row is stored at its place in `tokens` like any other, but otherwise
  // computed as if its sequence consisted of the tokens before the tree and of its path. REQUIRES:
  // no more parents than tokens and kMaxTreeRows.
  template <class Ids, class Blocks>
  void add_sequence(uint32_t first_position, const Ids& tokens, const Blocks& blocks,
                    std::span<const uint32_t> parents = {}) {
    sequences.push_back({.first_row = static_cast<uint32_t>(ids.size()),
                         .rows = static_cast<uint32_t>(std::size(tokens)),
                         .first_position = first_position,
                         .block_table = static_cast<uint32_t>(block_tables.size())});
    ids.insert(ids.end(), std::begin(tokens), std::end(tokens));
    block_tables.insert(block_tables.end(), std::begin(blocks), std::end(blocks));
    if (!is_chain(parents)) add_tree(parents);
  }

  // Wants the logits of a row, sampled as given. Returns the logit row, the index of its result.
  uint32_t sample(uint32_t row, const params::SamplingRow& how) {
    logit_rows.push_back(row);
    sampling.push_back(how);
    return static_cast<uint32_t>(logit_rows.size()) - 1;
  }

  // Says that these tokens became final for a slot whose rows did not count them: proposals that
  // were accepted, and the token after them. REQUIRES: the slot's sequence is in this step.
  template <class Ids>
  void commit(uint32_t slot, const Ids& tokens) {
    commits.push_back({.slot = slot,
                       .first = add_words(tokens),
                       .count = static_cast<uint32_t>(std::size(tokens))});
  }

  // Adds the ids that are proposed to a request, unread ones included. Returns their place for
  // verify_only().
  template <class Ids>
  uint32_t add_proposals(const Ids& tokens) {
    return add_words(tokens);
  }

  // Adds up the hidden states of these rows. Returns the number of sums, the first of which is
  // pools.size() before.
  uint32_t pool(uint32_t first_row, uint32_t rows) {
    const size_t before = pools.size();
    for (uint32_t done = 0; done < rows; done += params::kMaxPoolRows)
      pools.push_back(
          {.first_row = first_row + done, .rows = std::min(rows - done, params::kMaxPoolRows)});
    return static_cast<uint32_t>(pools.size() - before);
  }

  // Adds a token mask, one bit per token of the vocabulary, the lowest bit of a word first. Returns
  // its place for use_mask(); several rows may use it.
  uint32_t add_mask(std::span<const uint32_t> bits) { return add_words(bits); }

  // Adds padding rows that attend to the keys before the last `count` tokens of `member`, as these
  // do. Without keys to attend to, the first of them skips attention. REQUIRES: all padding rows
  // have the same `member`, `count` is at most its rows, and no sequence is added after them.
  void add_padding(const params::StepSequence& member, uint32_t count = 1) {
    uint32_t position = member.first_position + member.rows - count;
    if (position == 0) {
      ++padding_rows;
      ++position;
      --count;
    }
    if (count == 0) return;
    sequences.push_back({.first_row = rows(),
                         .rows = count,
                         .first_position = position,
                         .block_table = member.block_table});
    ++padding_sequences;
    padding_rows += count;
  }

  // The number of sequences that are not padding.
  size_t members() const { return sequences.size() - padding_sequences; }
  // A chain is no tree: its rows are what ordinary rows are.
  static bool is_chain(std::span<const uint32_t> parents) {
    for (uint32_t i = 0; i < parents.size(); ++i)
      if (parents[i] != (i == 0 ? kTreeRoot : i - 1)) return false;
    return true;
  }
  uint32_t rows() const { return static_cast<uint32_t>(ids.size()) + padding_rows; }
  uint32_t longest() const {
    uint32_t most = 0;
    for (const params::StepSequence& sequence : sequences) most = std::max(most, sequence.rows);
    return most;
  }

 private:
  // Returns their place.
  template <class Words>
  uint32_t add_words(const Words& more) {
    const auto place = static_cast<uint32_t>(words.size());
    words.insert(words.end(), std::begin(more), std::end(more));
    return place;
  }

  // Makes the last rows so far a tree.
  void add_tree(std::span<const uint32_t> parents) {
    assert(parents.size() <= kMaxTreeRows && parents.size() <= sequences.back().rows);
    ancestors.resize(ids.size());
    uint32_t* const masks = ancestors.data() + ids.size() - parents.size();
    for (uint32_t i = 0; i < parents.size(); ++i) {
      assert(parents[i] == kTreeRoot || parents[i] < i);
      masks[i] = (parents[i] == kTreeRoot ? 0 : masks[parents[i]]) | 1u << i;
    }
  }
};

}  // namespace hearth
