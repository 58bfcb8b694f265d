#include "engine/model/step_bucket_list.h"

#include <algorithm>
#include <bit>

namespace hearth {
namespace {

constexpr uint32_t kSmallestMixedStandIn = 16;  // rows
// What rows of sampling may need. Each combination has kernels of its own.
constexpr uint8_t kSamplingNeeds[] = {0,
                                      kStepRowExtras,
                                      kStepCommits,
                                      kStepStages,
                                      kStepRowExtras | kStepStages,
                                      kStepRowExtras | kStepCommits,
                                      kStepCommits | kStepStages,
                                      kStepRowExtras | kStepCommits | kStepStages};

// The powers of two below the largest size, and that.
template <class Visit>
void for_doublings(uint32_t first, uint32_t largest, Visit visit) {
  for (uint64_t size = first; size < largest; size *= 2) visit(static_cast<uint32_t>(size));
  visit(largest);
}

std::vector<uint32_t> contexts_within(uint32_t longest) {
  std::vector<uint32_t> contexts;
  for (uint64_t tokens = 1; tokens <= longest; tokens = uint64_t{contexts.back()} + 1)
    contexts.push_back(bucket_context(static_cast<uint32_t>(tokens)));
  return contexts;
}

// The stand-ins for plain steps, cheapest first: those of decode steps, then the others.
std::vector<StepBucket> plain_stand_ins(const StepLimits& limits, bool decodes) {
  std::vector<StepBucket> buckets;
  const uint32_t context = bucket_context(limits.context);
  if (decodes)
    for_doublings(1, bucket_size(limits.sequences),
                  [&](uint32_t size) { buckets.push_back(choose_bucket(size, size, 1, size)); });
  for_doublings(kSmallestMixedStandIn, std::max(kSmallestMixedStandIn, bucket_size(limits.rows)),
                [&](uint32_t size) {
                  buckets.push_back(choose_bucket(size, std::min(size, limits.sequences), size,
                                                  std::min(size, limits.logit_rows)));
                });
  for (StepBucket& bucket : buckets) bucket.context = context;
  return buckets;
}

}  // namespace

bool fits_into(const StepBucket& bucket, const StepBucket& other) {
  return bucket.rows <= other.rows && bucket.sequences <= other.sequences &&
         bucket.sequence_rows <= other.sequence_rows && bucket.logit_rows <= other.logit_rows &&
         bucket.context <= other.context && (bucket.greedy || !other.greedy) &&
         bucket.trees == other.trees && bucket.extras == other.extras;
}

std::vector<StepBucket> stand_in_buckets(const StepBucket& bucket, const StepLimits& limits) {
  std::vector<StepBucket> buckets = plain_stand_ins(limits, bucket.sequence_rows <= 1);
  for (StepBucket& stand_in : buckets) {
    stand_in.trees = bucket.trees;
    stand_in.extras = bucket.extras;
    // Padding may make sequences out of rows that belong to none.
    if (stand_in.sequence_rows > 1)
      stand_in.sequences = std::max(stand_in.sequences, bucket.sequences);
  }
  std::erase_if(buckets, [&](const StepBucket& stand_in) {
    return stand_in == bucket || !fits_into(bucket, stand_in);
  });
  return buckets;
}

std::vector<StepBucket> minimum_buckets(const StepLimits& limits, const StepNeeds& needs) {
  const std::vector<StepBucket> plain = plain_stand_ins(limits, true);
  std::vector<StepBucket> buckets = plain;
  const auto add = [&](uint8_t extras, bool trees) {
    for (StepBucket bucket : plain) {
      bucket.extras = extras;
      bucket.trees = trees;
      buckets.push_back(bucket);
    }
  };
  for (const uint8_t extras : kSamplingNeeds)
    if (extras != 0) add(extras, false);
  add(kStepPools, false);
  if (needs.trees) add(0, true);
  if (needs.mixes) add(kStepMixes, false);
  return buckets;
}

std::vector<StepBucket> covering_buckets(const StepLimits& limits, const StepNeeds& needs) {
  std::vector<StepBucket> buckets;
  const std::vector<uint32_t> contexts = contexts_within(limits.context);
  const auto add = [&](StepBucket bucket) {
    for (const uint32_t context : contexts) {
      bucket.context = context;
      for (const bool greedy : {true, false}) {
        bucket.greedy = greedy;
        buckets.push_back(bucket);
      }
    }
  };
  for_bucket_sizes(limits.sequences,
                   [&](uint32_t size) { add(choose_bucket(size, size, 1, size)); });
  const uint32_t most_rows = bucket_size(limits.rows);
  const auto add_mixed = [&](uint32_t rows, uint8_t extras, bool trees) {
    for_doublings(1, std::bit_ceil(std::min(rows, limits.sequences)), [&](uint32_t sequences) {
      StepBucket bucket =
          choose_bucket(rows, sequences, rows, std::min({sequences, rows, limits.logit_rows}));
      bucket.extras = extras;
      bucket.trees = trees;
      add(bucket);
    });
  };
  // Prompts of one request, from the longest chunk on; then all other mixtures.
  for_doublings(kSmallestMixedStandIn, most_rows,
                [&](uint32_t rows) { add_mixed(rows, 0, false); });
  for_bucket_sizes(limits.rows, [&](uint32_t rows) {
    if (rows > 1) add_mixed(rows, 0, false);
  });
  // Every number of logit rows, with everything that sampling may need.
  for_doublings(1, std::bit_ceil(std::min(limits.logit_rows, most_rows)), [&](uint32_t rows) {
    for (const uint8_t extras : kSamplingNeeds) {
      StepBucket bucket = choose_bucket(most_rows, 1, most_rows, rows);
      bucket.extras = extras;
      add(bucket);
    }
  });
  for_bucket_sizes(limits.rows, [&](uint32_t rows) {
    if (rows > 1) add_mixed(rows, kStepPools, false);
    if (rows > 1 && needs.trees) add_mixed(rows, 0, true);
  });
  if (needs.mixes) add_mixed(most_rows, kStepMixes, false);
  return buckets;
}

}  // namespace hearth
