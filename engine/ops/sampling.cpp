#include "engine/ops/sampling.h"

#include <algorithm>
#include <bit>

#include "engine/ops/tuning/profile.h"
#include "params/history_commit.h"
#include "params/mix_logits.h"
#include "params/sample_pick.h"
#include "params/sample_scan.h"
#include "params/sample_stages.h"
#include "params/sampling.h"

namespace hearth {
namespace {

// Small enough for sample_scan's 32-bit sums of a chunk, and for a vocabulary to give a whole GPU
// enough workgroups.
constexpr uint32_t kChunkLogits = 4096;
constexpr uint32_t kCpuGroups = 4;  // enough for a few cores
constexpr uint32_t kSegmentLogits = params::kSegmentQuads * 4;

bool much_shared(const DeviceCaps& caps) { return caps.limits.max_shared_bytes >= 32768; }

// The shared memory of sample_pick: 8 bytes per bin, 8 per listed token, and a little more.
struct PickTables {
  uint32_t bins, list_tokens;
};

// A bin of ids must fit into the list; kMaxSamplingVocab follows from the smallest list.
PickTables pick_tables(const DeviceCaps& caps, uint32_t vocab) {
  // Bins are slow on a CPU, which clears and adds them up with few lanes.
  if (is_cpu(caps)) return vocab <= 512 * 512 ? PickTables{512, 512} : PickTables{1024, 512};
  return much_shared(caps) ? PickTables{2048, 1024} : PickTables{1024, 512};
}

// The same for sample_stages. A list of 2,048 tokens holds those of top_k 1000 and all that tie
// with them.
PickTables stages_tables(const DeviceCaps& caps) {
  if (is_cpu(caps) || !much_shared(caps)) return {512, 512};
  return caps.limits.max_shared_bytes >= 49152 ? PickTables{2048, 2048} : PickTables{1024, 1024};
}

}  // namespace

SamplingPlan choose_sampling(const DeviceCaps& caps, const SamplingShape& shape) {
  const SamplingTuning tuning = tuning_profile(caps).sampling;
  // On a CPU a workgroup is one subgroup, for which barriers cost nothing. On a GPU each lane of a
  // chunk has one segment, and a row's search uses as many lanes as a workgroup may have. The chunk
  // size does not depend on the number of rows, so sums do not either, to the last bit.
  const uint32_t scan_lanes =
      is_cpu(caps) ? caps.subgroup_size : group_size(caps, kChunkLogits / kSegmentLogits);
  const uint32_t tiles = std::max(1u, kChunkLogits / kSegmentLogits / scan_lanes);
  // Few rows have the device to themselves: use more lanes with less work each.
  const uint32_t most_parts = caps.limits.max_group_invocations / std::max(1u, scan_lanes);
  const uint32_t parts = tiles == 1 && shape.rows <= tuning.few_rows
                             ? std::bit_floor(std::clamp(most_parts, 1u, 4u))
                             : 1;
  const PickTables tables = pick_tables(caps, shape.vocab);
  const uint32_t pick_lanes =
      is_cpu(caps) ? caps.subgroup_size : group_size(caps, std::min(1024u, tables.list_tokens));

  // A row without top_k is read completely, by several workgroups if rows are few.
  const uint32_t room = is_cpu(caps) ? kCpuGroups : tuning.resident_groups * multiprocessors(caps);
  // The last of them compares the winners of all, one per lane.
  const uint32_t most_shares = std::min(tuning.most_row_groups, pick_lanes);
  const uint32_t shares = std::clamp(room / std::max(1u, shape.rows), 1u, most_shares);

  SamplingPlan plan;
  plan.chunk_tokens = scan_lanes * tiles * kSegmentLogits;
  plan.chunks = std::max(1u, divide_up(shape.vocab, plan.chunk_tokens));
  plan.segments = plan.chunks * scan_lanes * tiles;
  plan.scan = {
      .pipeline = {.kernel = "sample_scan",
                   .constants = params::SampleScanConstants{.kWorkgroupSize = scan_lanes * parts,
                                                            .kLaneSegments = tiles,
                                                            .kSegmentLanes = parts,
                                                            .kPickGreedy = shape.greedy ? 1u : 0u,
                                                            .kExtras = shape.extras ? 1u : 0u,
                                                            .kStages = shape.stages ? 1u : 0u}},
      .groups = {.x = plan.chunks, .y = shape.rows}};
  if (!shape.greedy)
    plan.pick = {
        .pipeline = {.kernel = "sample_pick",
                     .constants = params::SamplePickConstants{.kWorkgroupSize = pick_lanes,
                                                              .kBins = tables.bins,
                                                              .kListTokens = tables.list_tokens,
                                                              .kScanLanes = scan_lanes}},
        .groups = {.x = shares, .y = shape.rows}};
  if (shape.stages) {
    const PickTables lists = stages_tables(caps);
    const uint32_t lanes =
        is_cpu(caps) ? caps.subgroup_size : group_size(caps, std::min(1024u, lists.list_tokens));
    plan.stages = {
        .pipeline = {.kernel = "sample_stages",
                     .constants = params::SampleStagesConstants{.kWorkgroupSize = lanes,
                                                                .kBins = lists.bins,
                                                                .kListTokens = lists.list_tokens,
                                                                .kScanLanes = scan_lanes}},
        .groups = {.x = 1, .y = shape.rows}};
  }
  const auto rounded = [](uint64_t bytes) { return round_up(bytes, 256); };
  const uint64_t chunk_bytes =
      sizeof(params::SamplingChunk) + (shape.stages ? sizeof(params::SamplingSums) : 0);
  plan.chunk_bytes = rounded(uint64_t{shape.rows} * plan.chunks * chunk_bytes);
  plan.segment_bytes = rounded(uint64_t{shape.rows} * plan.segments * 4);
  plan.tally_words = shares > 1 && !shape.greedy ? 2 + 2 * tables.bins : 0;
  plan.tally_bytes = rounded(uint64_t{shape.rows} * plan.tally_words * 4);
  return plan;
}

OpCost sampling_cost(const SamplingShape& shape) {
  const double logits = 1.0 * shape.rows * shape.vocab;
  constexpr double kOperations = 20;  // per logit
  return {.activation_bytes = 4 * logits, .operations = kOperations * logits};
}

KernelPlan choose_history_commit(const DeviceCaps& caps, uint32_t commits) {
  const uint32_t lanes = is_cpu(caps) ? caps.subgroup_size : group_size(caps, 256);
  return {.pipeline = {.kernel = "history_commit",
                       .constants = params::CommitHistoryConstants{.kWorkgroupSize = lanes}},
          .groups = {.x = commits}};
}

KernelPlan choose_mix_logits(const DeviceCaps& caps, const SamplingShape& shape) {
  // A row that needs its largest logit first has only one of these workgroups, hence the many
  // lanes.
  const uint32_t lanes = is_cpu(caps) ? caps.subgroup_size : group_size(caps, 1024);
  const uint32_t most_groups = tuning_profile(caps).sampling.most_row_groups;
  const uint32_t groups =
      is_cpu(caps) ? 1 : std::clamp(divide_up(shape.vocab, lanes), 1u, most_groups);
  return {.pipeline = {.kernel = "mix_logits",
                       .constants = params::MixLogitsConstants{.kWorkgroupSize = lanes}},
          .groups = {.x = groups, .y = shape.rows}};
}

}  // namespace hearth
