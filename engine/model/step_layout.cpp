#include "engine/model/step_layout.h"

#include "params/attention_work.h"
#include "params/hidden_rows.h"
#include "params/pool_rows.h"
#include "params/sampling.h"
#include "params/step.h"
#include "runtime/rounding.h"

namespace hearth {
namespace {

constexpr uint64_t kInputAlignment = 64;

// Assigns offsets one after the other.
struct Placer {
  uint64_t end = 0;
  template <class T>
  uint64_t place(uint64_t count) {
    const uint64_t offset = round_up(end, kInputAlignment);
    end = offset + count * sizeof(T);
    return offset;
  }
};

}  // namespace

uint32_t step_pools(const StepBucket& bucket) {
  return bucket.rows / params::kMaxPoolRows + bucket.sequences;
}

StepLayout step_layout(const StepBucket& bucket, const AttentionCapacity& capacity, size_t windows,
                       bool dealt) {
  Placer placer;
  StepLayout layout;
  layout.ids = placer.place<uint32_t>(bucket.rows);
  layout.row_sequences = placer.place<uint32_t>((bucket.trees ? 2 : 1) * uint64_t{bucket.rows});
  layout.ancestors = layout.row_sequences + uint64_t{bucket.rows} * sizeof(uint32_t);
  layout.sequences = placer.place<params::StepSequence>(bucket.sequences);
  layout.logit_rows = placer.place<uint32_t>(bucket.logit_rows);
  layout.sampling = placer.place<params::SamplingRow>(bucket.logit_rows);
  if ((bucket.extras & kStepCommits) != 0)
    layout.commits = placer.place<params::HistoryCommit>(bucket.sequences);
  if ((bucket.extras & kStepPools) != 0)
    layout.pools = placer.place<params::PoolRange>(step_pools(bucket));
  if ((bucket.extras & kStepHidden) != 0) {
    layout.kept = placer.place<params::HiddenPlace>(bucket.rows);
    layout.compared = placer.place<params::HiddenComparison>(bucket.logit_rows);
  }
  for (size_t i = 0; i < windows; ++i) {
    layout.attention[i] = {.few = placer.place<params::AttentionItem>(capacity.few),
                           .many = placer.place<params::AttentionItem>(capacity.many)};
    if (dealt && bucket.trees) layout.attention[i].ancestors = placer.place<uint32_t>(bucket.rows);
  }
  layout.block_tables = placer.place<uint32_t>(0);
  return layout;
}

}  // namespace hearth
