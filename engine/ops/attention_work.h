// How a step's attention is divided into workgroups: a pure function of the step's sequences and of
// the numbers from kernel choice. The lists go to the GPU with the other inputs of a step. They
// have the same length for every step of a bucket; padding at the end does nothing.
//
// Sequences with few rows in the step (one, when decoding) or with a tree go to the list `few`,
// prompt chunks to `many`; each list has its own kernel. Where there is a kernel for prompts, steps
// for several rows of one sequence without a tree have no list `few`; others of few rows have no
// list `many` (prefers_one_token_tiles() in attention/). A sequence is divided into tiles of
// consecutive tokens, and a tile's keys into splits, until there is work for the whole device. A
// tile with one split writes its result directly; otherwise the splits leave partial results, and
// the last one to finish merges them.
//
// If ranks share a pool of KV blocks, a rank's items are about the keys that it has, by the numbers
// that DealtTables gives them. A tile is then within one block, so that its rows see the same of
// these keys, or one more each; a row with a window or in a tree is a tile of its own, whose
// keys and ancestors are found here. Tiles without keys on the rank have no items.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ops/dealt_tables.h"
#include "params/attention_work.h"
#include "params/step.h"
#include "runtime/result.h"

namespace hearth {

struct AttentionTuning {
  uint32_t few_tokens = 1;   // per tile of `few`; 0: everything goes to `many`, no trees
  uint32_t many_tokens = 0;  // per tile of `many`; 0: no such kernel, everything goes to `few`
  // Splits are at least this long, a multiple of kTokensPerBlock.
  uint32_t split_keys = 256;
  // Each list is divided into about this many items, if splits stay long enough.
  uint32_t wanted_items = 0;
  // Splits end only at multiples of split_keys, whatever else is in the batch. With tiles of one
  // token, a row's result is then the same, to the last bit, in every batch.
  bool fixed_splits = false;
  // Tiles are as for dealt blocks: as many as tokens, at worst.
  bool dealt = false;

  bool operator==(const AttentionTuning&) const = default;
};

// The bucket a step was recorded for.
struct AttentionBucket {
  uint32_t rows = 0;
  uint32_t sequences = 0;
  uint32_t sequence_rows = 0;    // most rows per sequence in a step; 1: decoding only
  uint32_t sequence_tokens = 0;  // most tokens of a sequence
  bool trees = false;            // sequences may have trees

  bool operator==(const AttentionBucket&) const = default;
};

// The lengths of the lists and the number of slots for partial results: enough for every step of
// the bucket.
struct AttentionCapacity {
  uint32_t few = 0, many = 0, slots = 0;

  bool operator==(const AttentionCapacity&) const = default;
};

AttentionCapacity attention_capacity(const AttentionTuning& tuning, const AttentionBucket& bucket);

struct AttentionWork {
  std::vector<params::AttentionItem> few, many;  // capacity.few and .many of them
  // With dealt blocks and trees: the rows' ancestor masks in terms of the keys that are here. A row
  // without ancestors here is none of a tree.
  std::vector<uint32_t> ancestors;
};

// The step to plan for.
struct AttentionStep {
  std::span<const params::StepSequence> sequences;
  // Those after the first `members` are padding: they attend to the keys before them, but not to
  // their own, which are not stored.
  size_t members = 0;
  uint32_t window = 0;  // each window needs its own lists
  // Ancestor masks of the step's rows (shaders/common/tree_rows.glsl); rows past its end are in no
  // tree.
  std::span<const uint32_t> ancestors = {};
  const DealtTables* dealt = nullptr;  // of the same sequences; null: all keys are here
};

// Builds the lists of a step and reuses their memory: planning a step of a known size does not
// allocate. For one thread.
class AttentionPlanner {
 public:
  // Fails if the sequences exceed the bucket that `capacity` was computed for.
  Status plan(const AttentionStep& step, const AttentionTuning& tuning,
              const AttentionCapacity& capacity);

  const AttentionWork& work() const { return work_; }

 private:
  // A tile and all keys that any of its tokens attends to.
  struct Tile {
    uint32_t first_row, first_position, tokens, block_table, key_begin, key_end;
    bool counts_sinks = true;
    uint32_t keys() const { return key_end - key_begin; }
  };
  void cut_into_tiles(const AttentionStep& step, const AttentionTuning& tuning, bool few);
  // The tile as this rank sees it; also notes the ancestors of its row.
  Tile dealt_tile(const AttentionStep& step, size_t sequence, Tile tile);
  void add_tiles(const AttentionTuning& tuning, std::vector<params::AttentionItem>& items);
  void add_tile(const Tile& tile, const AttentionTuning& tuning, uint32_t split_keys,
                std::vector<params::AttentionItem>& items);

  AttentionWork work_;
  std::vector<Tile> tiles_;
  uint32_t slots_ = 0;
};

// The same for a single step, without padding.
Result<AttentionWork> plan_attention(std::span<const params::StepSequence> sequences,
                                     uint32_t window, const AttentionTuning& tuning,
                                     const AttentionCapacity& capacity,
                                     std::span<const uint32_t> ancestors = {});

}  // namespace hearth
