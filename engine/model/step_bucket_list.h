// Which buckets steps can fall into, and which bucket can stand in for another. Pure.
//
// A few large buckets, the stand-ins, are enough to run any step: sizes that are powers of two,
// with room for the most sequences and logits and the longest context. They cost a step up to twice
// its time, and are used while the kernels of the step's own bucket are being compiled.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/activations.h"
#include "engine/model/step_bucket.h"

namespace hearth {

// Whether a step of `bucket` can run in `other`: no size is smaller, and other needs are the same.
bool fits_into(const StepBucket& bucket, const StepBucket& other);

// The stand-ins that a bucket fits into, cheapest first.
std::vector<StepBucket> stand_in_buckets(const StepBucket& bucket, const StepLimits& limits);

// What steps may need beyond plain decoding, in this session.
struct StepNeeds {
  bool trees = false;
  bool mixes = false;
  bool candidates = false;  // of contrastive search: trees whose hidden states are compared
  // Masks, penalties, sampling stages, embeddings. A draft or amateur model has none of them.
  bool extras = true;
};

// All stand-ins, for everything that steps may need. With their kernels any step can run.
std::vector<StepBucket> minimum_buckets(const StepLimits& limits, const StepNeeds& needs);

// Buckets whose kernels together are those of all buckets within the limits, likely ones first.
// They are much fewer than all: the kernels of layers depend on rows, sequences and context, and
// those of logits and sampling on logit rows, but none on both.
std::vector<StepBucket> covering_buckets(const StepLimits& limits, const StepNeeds& needs);

}  // namespace hearth
