// Which tokens of a row the stages so far have kept, and their logits after temperature and smoothing.
//
// Every stage keeps the row's order: the logits it leaves are a monotonic function of the original ones,
// and the tokens it keeps are neighbours in that order. So a row's state is a range of the order and the
// function, and no logit is ever written back.
//
// Include after sampling_key.glsl, sampling_reduce.glsl and sampling_row.glsl.
#ifndef HEARTH_STAGES_WARP_GLSL
#define HEARTH_STAGES_WARP_GLSL

const float kMostDistance = 1e9;  // finite, so that no product below is infinity * 0

// The distance of a logit below the largest one kept, y, from its distance d below the row's largest:
//   x = d - origin,  y = linear * x + square * x^2 + cube * x^3 - base
// All factors are >= 0 and x >= 0, so y never decreases with d, not even by rounding.
struct Warp {
  float origin, linear, square, cube, base;
};

struct Kept {
  uint first;  // the largest key kept
  Cut last;
  Warp warp;
};

Kept keep_everything(uint best_key) { return Kept(best_key, kEverything, Warp(0.0, 1.0, 0.0, 0.0, 0.0)); }

bool holds(Kept kept, uint key, uint id) { return key <= kept.first && is_kept(kept.last, key, id); }

float original_distance(float top_logit, uint key) {
  precise const float distance = top_logit - key_logit(key);
  return min(distance, kMostDistance);
}

float warped(Warp warp, float distance) {
  precise const float x = distance - warp.origin;
  precise const float y = x * (warp.linear + x * (warp.square + x * warp.cube)) - warp.base;
  return y;
}

float kept_distance(Kept kept, float top_logit, uint key) {
  return warped(kept.warp, original_distance(top_logit, key));
}

// Makes `first` the largest key kept, at distance 0.
void begin_at(inout Kept kept, float top_logit, uint first) {
  kept.first = first;
  kept.warp.base = 0;
  kept.warp.base = kept_distance(kept, top_logit, first);
}

// Multiplies all distances, as a temperature does.
void scale(inout Kept kept, float top_logit, float factor) {
  kept.warp.linear *= factor;
  kept.warp.square *= factor;
  kept.warp.cube *= factor;
  begin_at(kept, top_logit, kept.first);
}

// distance = square * distance^2 + cube * distance^3. REQUIRES: the distances so far are linear.
void bend(inout Kept kept, float top_logit, float square, float cube) {
  const float factor = kept.warp.linear;
  kept.warp = Warp(original_distance(top_logit, kept.first), 0, square * factor * factor,
                   cube * factor * factor * factor, 0);
}

// Both of the following try as many keys at a time as a subgroup has lanes. Distances never decrease with
// falling keys, so the keys that pass are neighbours, and their number says where the last one is. Every
// subgroup does all of it.

// The lowest key that is at most `limit` further down than `center`.
uint lowest_key(Kept kept, float top_logit, float center, float limit) {
  const Lanes own = subgroup_lanes();
  uint below = kMinusInfinityKey, key = kept.first;
  while (key - below > 1) {
    const uint span = key - below, step = (span + own.count) / (own.count + 1);
    const uint down = (own.lane + 1) * step;
    const uint tried = key - min(down, span - 1);
    precise const float depth = kept_distance(kept, top_logit, tried) - center;
    const uint passed = subgroupAdd(down < span && depth <= limit ? 1u : 0u);
    if (passed < own.count && (passed + 1) * step < span) below = key - (passed + 1) * step;
    key -= passed * step;
  }
  return key;
}

// The highest key that is at most `limit` further up than `center`.
uint highest_key(Kept kept, float top_logit, float center, float limit) {
  const Lanes own = subgroup_lanes();
  uint key = kMinusInfinityKey + 1, above = kept.first + 1;
  while (above - key > 1) {
    const uint span = above - key, step = (span + own.count) / (own.count + 1);
    const uint up = (own.lane + 1) * step;
    const uint tried = key + min(up, span - 1);
    precise const float height = center - kept_distance(kept, top_logit, tried);
    const uint passed = subgroupAdd(up < span && height <= limit ? 1u : 0u);
    if (passed < own.count && (passed + 1) * step < span) above = key + (passed + 1) * step;
    key += passed * step;
  }
  return key;
}

// Drops tokens that are further than `limit` below the first, which always stays. Returns whether the
// limit is closer than the earlier ones.
bool keep_within(inout Kept kept, float top_logit, float limit) {
  const uint key = lowest_key(kept, top_logit, 0.0, max(limit, 0.0));
  if (key <= kept.last.key) return false;
  kept.last = Cut(key, 0xffffffffu);
  return true;
}

#endif
