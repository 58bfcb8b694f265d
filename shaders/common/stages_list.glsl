// The tokens that are left, once they are few enough for shared memory. The list is sorted in the row's
// order, so the tokens kept are a range of it, and whatever a stage looks for is found by bisection or in
// running sums. Every invocation of the workgroup must call these functions, with the same arguments.
//
// Include after sampling_list.glsl, whose bins hold the running sums, and stages_tokens.glsl.
// REQUIRES: kListTokens <= kBins.
#ifndef HEARTH_STAGES_LIST_GLSL
#define HEARTH_STAGES_LIST_GLSL

shared uvec2 subgroup_moments[256];

// The range of the list that is kept. Its first token has the key kept.first.
struct Range {
  uint begin, end;
};

float listed_distance(Kept kept, float top_logit, uint i) {
  return kept_distance(kept, top_logit, list_keys[i]);
}

bool comes_before(uint key, uint id, uint other_key, uint other_id) {
  return key > other_key || (key == other_key && id < other_id);
}

// Moves the range to the beginning and sorts it in the row's order.
void sort_range(inout Range range) {
  const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
  const uint count = range.end - range.begin;
  barrier();
  if (range.begin > 0) {
    for (uint i = lane; i < count; i += lanes) {
      bin_low[i] = list_keys[range.begin + i];
      bin_high[i] = list_ids[range.begin + i];
    }
    barrier();
    for (uint i = lane; i < count; i += lanes) {
      list_keys[i] = bin_low[i];
      list_ids[i] = bin_high[i];
    }
  }
  range = Range(0, count);
  // A bitonic sort needs a power of two, so the range is padded with entries that sort last.
  const uint size = 1u << bits_of(count - 1);
  for (uint i = count + lane; i < size; i += lanes) {
    list_keys[i] = 0;
    list_ids[i] = 0xffffffffu;
  }
  for (uint run = 2; run <= size; run *= 2) {
    for (uint apart = run / 2; apart > 0; apart /= 2) {
      barrier();
      for (uint pair = lane; pair < size / 2; pair += lanes) {
        const uint a = 2 * pair - (pair & (apart - 1)), b = a + apart;
        const uint key_a = list_keys[a], id_a = list_ids[a];
        const uint key_b = list_keys[b], id_b = list_ids[b];
        const bool upwards = (a & run) == 0;
        if (comes_before(key_b, id_b, key_a, id_a) != upwards) continue;
        list_keys[a] = key_b;
        list_ids[a] = id_b;
        list_keys[b] = key_a;
        list_ids[b] = id_a;
      }
    }
  }
  barrier();
}

// Measures the range: kMeasureWeights or kMeasureSpread.
Measures measure_range(Kept kept, float top_logit, Range range, uint what) {
  uint64_t first = 0, second = 0;
  for (uint i = range.begin + gl_LocalInvocationID.x; i < range.end; i += gl_WorkGroupSize.x) {
    const float distance = listed_distance(kept, top_logit, i);
    if (what == kMeasureSpread) {
      const uint steps = spread_steps(distance);
      first += steps;
      second += uint64_t(steps) * steps;
    } else {
      const uint64_t weight = weight_of(distance);
      first += weight;
      second += weight_moment(weight, distance);
    }
  }
  first = subgroup_sum64(first);
  second = subgroup_sum64(second);
  if (gl_NumSubgroups > 1) {
    barrier();  // an earlier call may still read them
    if (subgroupElect()) {
      subgroup_pairs[gl_SubgroupID] = uvec2(uint(first), uint(first >> 32));
      subgroup_moments[gl_SubgroupID] = uvec2(uint(second), uint(second >> 32));
    }
    barrier();
    const Lanes own = subgroup_lanes();
    first = second = 0;
    for (uint i = own.lane; i < gl_NumSubgroups; i += own.count) {
      first += join_words(subgroup_pairs[i].x, subgroup_pairs[i].y);
      second += join_words(subgroup_moments[i].x, subgroup_moments[i].y);
    }
    first = subgroup_sum64(first);
    second = subgroup_sum64(second);
  }
  return Measures(range.end - range.begin, list_keys[range.begin], list_keys[range.end - 1], first,
                  second, first, second);
}

// The sum of weights up to the i-th token, from the range's first on; after add_up().
uint64_t running_sum(uint i) { return join_words(bin_low[i], bin_high[i]); }

// Adds up the weights of the range in the list's order, and returns their sum.
uint64_t add_up(Kept kept, float top_logit, Range range) {
  const Lanes own = subgroup_lanes();
  const uint each = DIVIDE_UP(range.end - range.begin, gl_WorkGroupSize.x);
  const uint first =
      min(range.begin + (gl_SubgroupID * own.count + own.lane) * each, range.end);
  const uint end = min(first + each, range.end);
  barrier();  // an earlier call's sums may still be read
  uint64_t sum = 0;
  for (uint i = first; i < end; ++i) {
    sum += weight_of(listed_distance(kept, top_logit, i));
    bin_low[i] = uint(sum);
    bin_high[i] = uint(sum >> 32);
  }
  const uint64_t running = subgroup_running_sum64(sum);
  uint64_t total = subgroup_sum64(sum), before = running - sum;
  if (gl_NumSubgroups > 1) {
    share_with_workgroup(uvec2(uint(total), uint(total >> 32)));
    uint64_t earlier = 0;
    total = 0;
    for (uint i = own.lane; i < gl_NumSubgroups; i += own.count) {
      const uint64_t other = join_words(subgroup_pairs[i].x, subgroup_pairs[i].y);
      total += other;
      if (i < gl_SubgroupID) earlier += other;
    }
    total = subgroup_sum64(total);
    before += subgroup_sum64(earlier);
  }
  for (uint i = first; i < end; ++i) {
    const uint64_t all = running_sum(i) + before;
    bin_low[i] = uint(all);
    bin_high[i] = uint(all >> 32);
  }
  barrier();
  return total;
}

// The token of the range at which the running sum exceeds the target. REQUIRES: it does; add_up().
uint token_at(Range range, uint64_t target) {
  uint low = range.begin, high = range.end - 1;
  while (low < high) {
    const uint middle = (low + high) / 2;
    if (running_sum(middle) > target)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// The end of the tokens of the range that are at most `limit` further down than `center`.
uint end_within(Kept kept, float top_logit, Range range, float center, float limit) {
  uint low = range.begin, high = range.end;
  while (low < high) {
    const uint middle = (low + high) / 2;
    precise const float depth = listed_distance(kept, top_logit, middle) - center;
    if (depth <= limit)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// The first token of the range that is at most `limit` further up than `center`.
uint begin_within(Kept kept, float top_logit, Range range, float center, float limit) {
  uint low = range.begin, high = range.end;
  while (low < high) {
    const uint middle = (low + high) / 2;
    precise const float height = center - listed_distance(kept, top_logit, middle);
    if (height <= limit)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// The first token of the range that has this key. REQUIRES: there is one.
uint first_with_key(Range range, uint key) {
  uint low = range.begin, high = range.end - 1;
  while (low < high) {
    const uint middle = (low + high) / 2;
    if (list_keys[middle] <= key)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

uint listed_deviation(Kept kept, float top_logit, float center, uint i) {
  precise const float deviation = abs(listed_distance(kept, top_logit, i) - center);
  return deviation_ordinal(min(deviation, kMostDistance));
}

// The smallest deviation from `center` (as an ordinal) up to which tokens have a sum above the target.
// Deviations fall up to the center and then rise, so tokens that deviate less are neighbours.
// REQUIRES: add_up(), and its result exceeds the target.
uint deviation_at(Kept kept, float top_logit, Range range, float center, uint64_t target) {
  const uint turn = end_within(kept, top_logit, range, center, 0.0);
  uint least = 0xffffffffu;
  for (uint i = range.begin + gl_LocalInvocationID.x; i < range.end; i += gl_WorkGroupSize.x) {
    const uint own = listed_deviation(kept, top_logit, center, i);
    uint begin = range.begin, low_end = turn;
    while (begin < low_end) {
      const uint middle = (begin + low_end) / 2;
      if (listed_deviation(kept, top_logit, center, middle) <= own)
        low_end = middle;
      else
        begin = middle + 1;
    }
    uint end = turn, high_end = range.end;
    while (end < high_end) {
      const uint middle = (end + high_end) / 2;
      if (listed_deviation(kept, top_logit, center, middle) <= own)
        end = middle + 1;
      else
        high_end = middle;
    }
    uint64_t sum = running_sum(end - 1);
    if (begin > range.begin) sum -= running_sum(begin - 1);
    if (sum > target) least = min(least, own);
  }
  return workgroup_min(least);
}

#endif
