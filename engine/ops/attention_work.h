// How a step's attention is divided into workgroups: a pure function of the step's sequences and of
// the numbers from kernel choice. The lists go to the GPU with the other inputs of a step. They
// have the same length for every step of a bucket; padding at the end does nothing.
//
// Sequences with few rows in the step (one, when decoding) or with a tree go to the list `few`,
// prompt chunks to `many`; each list has its own kernel. A sequence is divided into tiles of
// consecutive tokens, and a tile's keys into splits, until there is work for the whole device. A
// tile with one split writes its result directly; otherwise the splits leave partial results, and
// the last one to finish merges them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "params/attention_work.h"
#include "params/step.h"
#include "runtime/result.h"

namespace hearth {

struct AttentionTuning {
  uint32_t few_tokens = 1;   // per tile of `few`
  uint32_t many_tokens = 0;  // per tile of `many`; 0: no such kernel, everything goes to `few`
  // Splits are at least this long, a multiple of kBlockTokens.
  uint32_t split_keys = 256;
  // Each list is divided into about this many items, if splits stay long enough.
  uint32_t wanted_items = 0;
  // Splits end only at multiples of split_keys, whatever else is in the batch. With tiles of one
  // token, a row's result is then the same, to the last bit, in every batch.
  bool fixed_splits = false;

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
};

// Builds the lists of a step and reuses their memory: planning a step of a known size does not
// allocate. For one thread.
class AttentionPlanner {
 public:
  // Sequences after the first `members` are padding: they attend to the keys before them, but not
  // to their own, which are not stored. Each window needs its own lists. Fails if the sequences
  // exceed the bucket that `capacity` was computed for. `ancestors` are the ancestor masks of the
  // step's rows (shaders/common/tree_rows.glsl); rows past its end are in no tree.
  Status plan(std::span<const params::StepSequence> sequences, size_t members, uint32_t window,
              const AttentionTuning& tuning, const AttentionCapacity& capacity,
              std::span<const uint32_t> ancestors = {});

  const AttentionWork& work() const { return work_; }

 private:
  // A tile and all keys that any of its tokens attends to.
  struct Tile {
    uint32_t first_row, first_position, tokens, block_table, key_begin, key_end;
    uint32_t keys() const { return key_end - key_begin; }
  };
  void cut_into_tiles(std::span<const params::StepSequence> sequences, size_t members,
                      uint32_t window, const AttentionTuning& tuning,
                      std::span<const uint32_t> ancestors, bool few);
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
