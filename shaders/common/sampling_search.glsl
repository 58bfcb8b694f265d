// Finds a token by its rank in a row's order: largest logit first, lowest id first among equals. The
// rank is a count of tokens or a sum of weights, and may be anywhere in the vocabulary.
//
// One pass over the row fills a histogram; a second lists the tokens of the bin that holds the rank. If
// they are too many, the bin is divided again: first by distance below the largest logit, then by key,
// and among equal keys by id, which always fits. Segments whose largest logit is outside the search are
// not read. Every invocation of the workgroup must call these functions, with the same arguments.
#ifndef HEARTH_SAMPLING_SEARCH_GLSL
#define HEARTH_SAMPLING_SEARCH_GLSL

#include "common/sampling_row.glsl"

const uint kByDistance = 0, kByKey = 1, kById = 2;

struct Search {
  Cut cut;         // only tokens that this keeps
  bool weighted;   // ranks are sums of weights, otherwise counts
  uint divided_by;
  float scale;        // kByDistance: bins per unit of distance
  uint low, high;     // the range of keys
  uint shift;         // kByKey: 2^shift keys per bin
  uint ids_per_bin;   // kById
};

float distance_of(Row row, uint key) {
  precise const float distance = row.top_logit - key_logit(key);
  return distance;
}

uint distance_bin(float distance, float scale) {
  precise const float place = min(distance * scale, float(kBins - 1));
  return uint(int(place));
}

uint bin_of(Search search, uint key, uint id, float distance) {
  if (search.divided_by == kByDistance) return distance_bin(distance, search.scale);
  if (search.divided_by == kByKey) return (search.high - key) >> search.shift;
  return id / search.ids_per_bin;
}

Search start_search(Row row, Cut cut, bool weighted) {
  Search search;
  search.cut = cut;
  search.weighted = weighted;
  search.divided_by = kByDistance;
  search.low = max(cut.key, row.lowest_key);
  search.high = 0xffffffffu;
  search.shift = 0;
  search.ids_per_bin = DIVIDE_UP(row.vocab, kBins);
  const float span = min(distance_of(row, search.low), kMaxDistance);
  search.scale = span > 1e-30 ? float(kBins) / span : 0.0;
  return search;
}

// What a pass over the row found, the same in every lane.
struct Pass {
  uint tokens;     // in the search
  uint low, high;  // range of their keys
};

// Goes over every token of the search in the row's segments: fills the histogram, or lists the tokens of
// bins first_bin to last_bin. Call it in one place only: it is long, and compilers inline it.
Pass pass_over_row(Row row, Search search, bool fill_bins, uint first_bin, uint last_bin) {
  if (fill_bins) {
    clear_bins();
  } else {
    clear_list();
  }
  Pass pass = Pass(0, 0xffffffffu, 0);
  for (uint s = row.first_segment + gl_LocalInvocationID.x; s < row.end_segment;
       s += gl_WorkGroupSize.x) {
    if (U32(row.segments).at[s] < search.low) continue;
    uvec4 next = load_quad(row.logits, segment_quad(s, 0, kScanLanes), row.vocab);
    [[dont_unroll]] for (uint j = 0; j < kSegmentQuads; ++j) {
      const uint quad = segment_quad(s, j, kScanLanes);
      const uvec4 keys = quad_keys(next);
      if (j + 1 < kSegmentQuads)
        next = load_quad(row.logits, segment_quad(s, j + 1, kScanLanes), row.vocab);
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        const uint key = keys[c], id = quad * 4 + c;
        if (key < search.low || key > search.high || !is_kept(search.cut, key, id)) continue;
        if (fill_bins) ++pass.tokens;
        const float distance = distance_of(row, key);
        if (search.weighted && !(distance < kMaxDistance)) continue;
        const uint bin = bin_of(search, key, id, distance);
        if (fill_bins) {
          if (search.weighted) {
            add_to_bin(bin, weight_of(distance));
          } else {
            atomicAdd(bin_low[bin], 1);
          }
        } else if (bin >= first_bin && bin <= last_bin) {
          ++pass.tokens;
          pass.low = min(pass.low, key);
          pass.high = max(pass.high, key);
          add_to_list(key, id);
        }
      }
    }
  }
  pass.tokens = workgroup_sum(pass.tokens);
  if (!fill_bins) {
    pass.low = workgroup_min(pass.low);
    pass.high = workgroup_max(pass.high);
  }
  return pass;
}

// Narrows the search to the tokens of one bin, which a pass has found to be too many for the list.
Search divide_bin(Search search, Pass pass) {
  search.low = pass.low;
  search.high = pass.high;
  search.divided_by = kById;
  if (pass.low < pass.high) {
    search.divided_by = kByKey;
    search.shift = uint(max(findMSB(pass.high - pass.low) - findMSB(kBins) + 1, 0));
  }
  return search;
}

// The index in the list of the token at which the running count or sum of weights exceeds the target.
// REQUIRES: the list is sorted and contains it.
uint rank_in_list(Row row, Search search, uint count, uint64_t target) {
  if (!search.weighted) return uint(target);
  weigh_list(count, row.top_logit);
  return walk_list(count, target);
}

#endif
