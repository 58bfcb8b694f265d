// The kernels of attention. A step has two lists of work (attention_work.h): `few` for single
// tokens and trees, `many` for prompts. Each is run by the first family of its list that supports
// it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/ops/attention.h"
#include "engine/ops/kernel_family.h"
#include "engine/ops/tuning/profile.h"

namespace hearth {

struct AttentionRequest {
  const DeviceCaps& caps;
  const AttentionShape& shape;
  PaceTuning tuning;  // of the device
  bool one_token;     // tiles of `few` have one token each
  uint32_t tokens;    // of the list `few`, by which subgroups are dealt out
  bool deterministic;
};

// How one of the lists is run.
struct AttentionListPlan {
  uint32_t tokens = 1;  // per tile
  KernelPlan kernel;    // except the number of items, groups.x
  // Workgroups that fill the device; more would only mean more splits to merge. 0: as many as for
  // any prompt.
  uint32_t wanted_groups = 0;
  uint32_t split_keys = 0;  // the fewest; only of `few`
};

using AttentionFamily = KernelFamily<AttentionRequest, AttentionListPlan>;
extern const AttentionFamily kAttentionSubgroup;  // attention_subgroup.cpp, and so on
extern const AttentionFamily kAttentionDirect;
extern const AttentionFamily kAttentionRows;
extern const AttentionFamily kAttentionLanes;
extern const AttentionFamily kAttentionTile;

// The last of the first supports everything; none of the second may.
std::span<const AttentionFamily* const> few_attention_families();
std::span<const AttentionFamily* const> many_attention_families();

// "attention_rows_sinks.f16"
std::string attention_kernel(std::string_view family, const AttentionShape& shape);
// The same for a family that also supports trees: its variant for them, if the step may have any.
std::string general_attention_kernel(std::string_view family, const AttentionShape& shape);

// The query heads per KV head; any number for a shape that record_attention() will refuse.
uint32_t heads_of_group(const AttentionShape& shape);

// A workgroup computes this many tokens of a sequence. Each token has as many rows as there are
// query heads per KV head.
struct HeadTile {
  uint32_t tokens, rows;
};
HeadTile head_tile(const AttentionShape& shape, uint32_t most_rows, bool one_token);
GroupCount tile_groups(const AttentionShape& shape, const HeadTile& tile);

// The lanes of a subgroup on devices with a known fragment layout.
inline constexpr uint32_t kFragmentLanes = 32;

// How the subgroups of a workgroup go over the keys of an item.
struct Pace {
  uint32_t subgroups;  // that divide the keys
  uint32_t in_flight;  // chunks of keys that a lane loads together
  bool overlap;        // whether it loads the next ones meanwhile
  uint32_t split_keys(const PaceTuning& tuning) const {
    return subgroups <= tuning.few_subgroups ? tuning.few_subgroups_split_keys : tuning.split_keys;
  }
};

}  // namespace hearth
