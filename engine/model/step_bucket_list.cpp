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

// A step of contrastive search. Each candidate is a sequence.
constexpr uint8_t kCandidateNeeds = kStepRowExtras | kStepHidden;

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

uint32_t most_sequences(const StepLimits& limits, bool candidates) {
  return candidates ? limits.most_sequences() : limits.sequences;
}

// Buckets with room for the longest context: `decode_sizes` of decode steps, then `sizes` of
// others, which also have room for `sequences` and the most logits.
std::vector<StepBucket> roomy_buckets(const StepLimits& limits, uint32_t sequences,
                                      const std::vector<uint32_t>& decode_sizes,
                                      const std::vector<uint32_t>& sizes) {
  std::vector<StepBucket> buckets;
  for (const uint32_t size : decode_sizes) buckets.push_back(choose_bucket(size, size, 1, size));
  for (const uint32_t size : sizes)
    buckets.push_back(
        choose_bucket(size, std::min(size, sequences), size, std::min(size, limits.logit_rows)));
  for (StepBucket& bucket : buckets) bucket.context = bucket_context(limits.context);
  return buckets;
}

uint32_t largest_mixed(const StepLimits& limits) {
  return std::max(kSmallestMixedStandIn, bucket_size(limits.rows));
}

// All sizes up to twice `rows`, then doublings.
std::vector<uint32_t> sizes_above(uint32_t rows, uint32_t first, uint32_t largest) {
  std::vector<uint32_t> sizes;
  for_bucket_sizes(std::min(2 * rows, largest), [&](uint32_t size) { sizes.push_back(size); });
  for_doublings(first, largest, [&](uint32_t size) { sizes.push_back(size); });
  std::erase_if(sizes, [&](uint32_t size) { return size < rows || size > largest; });
  std::ranges::sort(sizes);
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  return sizes;
}

}  // namespace

bool fits_into(const StepBucket& bucket, const StepBucket& other) {
  return bucket.rows <= other.rows && bucket.sequences <= other.sequences &&
         bucket.sequence_rows <= other.sequence_rows && bucket.logit_rows <= other.logit_rows &&
         bucket.context <= other.context && (bucket.greedy || !other.greedy) &&
         bucket.trees == other.trees && bucket.extras == other.extras;
}

std::vector<StepBucket> stand_in_buckets(const StepBucket& bucket, const StepLimits& limits) {
  const uint32_t sequences = most_sequences(limits, (bucket.extras & kStepHidden) != 0);
  std::vector<uint32_t> decode_sizes;
  if (bucket.sequence_rows <= 1) decode_sizes = sizes_above(bucket.rows, 1, bucket_size(sequences));
  std::vector<StepBucket> buckets =
      roomy_buckets(limits, sequences, decode_sizes,
                    sizes_above(bucket.rows, kSmallestMixedStandIn, largest_mixed(limits)));
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
  const auto with_room_for = [&](uint32_t sequences) {
    std::vector<uint32_t> decode_sizes, sizes;
    for_doublings(1, bucket_size(sequences), [&](uint32_t size) { decode_sizes.push_back(size); });
    for_doublings(kSmallestMixedStandIn, largest_mixed(limits),
                  [&](uint32_t size) { sizes.push_back(size); });
    return roomy_buckets(limits, sequences, decode_sizes, sizes);
  };
  const std::vector<StepBucket> plain = with_room_for(limits.sequences);
  std::vector<StepBucket> buckets = plain;
  const auto add = [&](uint8_t extras, bool trees) {
    for (StepBucket bucket :
         (extras & kStepHidden) != 0 ? with_room_for(limits.most_sequences()) : plain) {
      bucket.extras = extras;
      bucket.trees = trees;
      buckets.push_back(bucket);
    }
  };
  if (needs.trees) add(0, true);
  if (!needs.extras) return buckets;
  for (const uint8_t extras : kSamplingNeeds)
    if (extras != 0) add(extras, false);
  add(kStepPools, false);
  if (needs.candidates) add(kCandidateNeeds, false);
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
    const uint32_t most = most_sequences(limits, (extras & kStepHidden) != 0);
    for_doublings(1, std::bit_ceil(std::min(rows, most)), [&](uint32_t sequences) {
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
  // Logits of all rows, as scored prompts want them.
  for_bucket_sizes(std::bit_ceil(limits.logit_rows), [&](uint32_t rows) {
    if (rows > 1 && rows <= most_rows) add(choose_bucket(rows, 1, rows, rows));
  });
  // Every number of logit rows, with everything that sampling may need.
  for_doublings(1, std::bit_ceil(std::min(limits.logit_rows, most_rows)), [&](uint32_t rows) {
    for (const uint8_t extras : kSamplingNeeds) {
      if (extras != 0 && !needs.extras) continue;
      StepBucket bucket = choose_bucket(most_rows, 1, most_rows, rows);
      bucket.extras = extras;
      add(bucket);
    }
  });
  for_bucket_sizes(limits.rows, [&](uint32_t rows) {
    if (rows == 1) return;
    if (needs.extras) add_mixed(rows, kStepPools, false);
    if (needs.trees) add_mixed(rows, 0, true);
  });
  if (needs.mixes) add_mixed(most_rows, kStepMixes, false);
  if (!needs.candidates) return buckets;
  for_bucket_sizes(limits.most_sequences(), [&](uint32_t size) {
    StepBucket bucket = choose_bucket(size, size, 1, size);
    bucket.extras = kCandidateNeeds;
    add(bucket);
  });
  for_bucket_sizes(limits.rows, [&](uint32_t rows) {
    if (rows > 1) add_mixed(rows, kCandidateNeeds, false);
  });
  return buckets;
}

}  // namespace hearth
