// How a step's attention is cut into workgroups: a pure function of the step's sequences and of the
// numbers kernel choice gave. The lists go to the GPU with the other inputs of a step, and have the
// same length for every step of a bucket: padding at the end does nothing.
//
// Sequences with few rows in the step (one, when decoding) go to the list `few`, prompt chunks to
// `many`; each list has a kernel of its own. A sequence is cut into tiles of neighbouring tokens,
// and a tile's keys into splits, until there is work for the whole device. Tiles of one split write
// the result at once; splits of the others leave partial results, and the last one puts them
// together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "params/attention_work.h"
#include "params/step.h"
#include "runtime/result.h"

namespace hearth {

struct AttentionTuning {
  uint32_t few_tokens = 1;   // of a tile of `few`
  uint32_t many_tokens = 0;  // of a tile of `many`; 0: there is no such kernel, `few` takes all
  // Splits are at least this long, a multiple of kBlockTokens.
  uint32_t split_keys = 256;
  // Each list is split into about this many items where splits stay long enough.
  uint32_t wanted_items = 0;
  // Splits end at multiples of split_keys and at no other place, whatever else is in the batch:
  // with tiles of one token a row's result is then the same to the last bit in every batch.
  bool fixed_splits = false;

  bool operator==(const AttentionTuning&) const = default;
};

// The bucket a step was recorded for.
struct AttentionBucket {
  uint32_t rows = 0;
  uint32_t sequences = 0;
  uint32_t sequence_rows = 0;    // the most a sequence has in a step; 1: decoding only
  uint32_t sequence_tokens = 0;  // the longest a sequence gets

  bool operator==(const AttentionBucket&) const = default;
};

// The lengths of the lists, and the slots of partial results they may use. Enough for every step
// within the bucket.
struct AttentionCapacity {
  uint32_t few = 0, many = 0, slots = 0;

  bool operator==(const AttentionCapacity&) const = default;
};

AttentionCapacity attention_capacity(const AttentionTuning& tuning, const AttentionBucket& bucket);

struct AttentionWork {
  std::vector<params::AttentionItem> few, many;  // capacity.few and .many of them
};

// Makes the lists of a step, and keeps their memory for the next: planning a step of a size seen
// before allocates nothing. One thread.
class AttentionPlanner {
 public:
  // Sequences after the first `members` are padding: they see the keys before them, but not their
  // own, which nobody keeps. Layers with different windows need lists of their own. Fails if the
  // sequences are outside the bucket that `capacity` was made for.
  Status plan(std::span<const params::StepSequence> sequences, size_t members, uint32_t window,
              const AttentionTuning& tuning, const AttentionCapacity& capacity);

  const AttentionWork& work() const { return work_; }

 private:
  // A tile and all the keys that any of its tokens sees.
  struct Tile {
    uint32_t first_row, first_position, tokens, block_table, key_begin, key_end;
    uint32_t keys() const { return key_end - key_begin; }
  };
  void cut_into_tiles(std::span<const params::StepSequence> sequences, size_t members,
                      uint32_t window, const AttentionTuning& tuning, bool few);
  void add_tiles(const AttentionTuning& tuning, std::vector<params::AttentionItem>& items);
  void add_tile(const Tile& tile, const AttentionTuning& tuning, uint32_t split_keys,
                std::vector<params::AttentionItem>& items);

  AttentionWork work_;
  std::vector<Tile> tiles_;
  uint32_t slots_ = 0;
};

// The same for one step on its own, without padding.
Result<AttentionWork> plan_attention(std::span<const params::StepSequence> sequences,
                                     uint32_t window, const AttentionTuning& tuning,
                                     const AttentionCapacity& capacity);

}  // namespace hearth
