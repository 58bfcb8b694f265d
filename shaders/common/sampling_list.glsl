// A short list of a row's tokens in shared memory, and the histogram that decides which tokens to put
// there. Every invocation of the workgroup must call these functions, with the same arguments.
//
// The kernel's constants kListTokens and kBins are their sizes. The list uses the histogram's memory as
// scratch, so a list and a histogram are never needed at the same time. Include after sampling_reduce.glsl.
// REQUIRES: lanes <= kListTokens <= kBins, powers of two.
#ifndef HEARTH_SAMPLING_LIST_GLSL
#define HEARTH_SAMPLING_LIST_GLSL

const uint kBlockBins = 32;  // bins per block; sums are taken block by block

shared uint bin_low[kBins];   // 64-bit sums
shared uint bin_high[kBins];
shared uint list_keys[kListTokens];  // sorted: largest first; before that, scratch for the blocks' sums
shared uint list_ids[kListTokens];
shared uint list_count;  // tokens added; if more than kListTokens, some were dropped

uint64_t join_words(uint low, uint high) { return (uint64_t(high) << 32) | low; }

void clear_bins() {
  barrier();
  for (uint i = gl_LocalInvocationID.x; i < kBins; i += gl_WorkGroupSize.x) {
    bin_low[i] = 0;
    bin_high[i] = 0;
  }
  barrier();
}

// Adds to a bin, from any lane. The lane that makes the low word wrap adds the carry.
void add_to_bin(uint bin, uint64_t amount) {
  const uint low = uint(amount);
  const uint before = atomicAdd(bin_low[bin], low);
  const uint high = uint(amount >> 32) + (before + low < before ? 1u : 0u);
  if (high != 0) atomicAdd(bin_high[bin], high);
}

// Adds up all bins. find_bin() needs this to have been called.
uint64_t sum_bins() {
  barrier();
  const uint blocks = kBins / kBlockBins;
  const Lanes own = subgroup_lanes();
  for (uint block = gl_SubgroupID; block < blocks; block += gl_NumSubgroups) {
    uint64_t sum = 0;
    for (uint i = own.lane; i < kBlockBins; i += own.count)
      sum += join_words(bin_low[block * kBlockBins + i], bin_high[block * kBlockBins + i]);
    sum = subgroup_sum64(sum);
    if (subgroupElect()) {
      list_keys[block] = uint(sum);
      list_ids[block] = uint(sum >> 32);
    }
  }
  barrier();
  uint64_t total = 0;
  for (uint block = own.lane; block < blocks; block += own.count)
    total += join_words(list_keys[block], list_ids[block]);
  return subgroup_sum64(total);
}

struct BinPosition {
  uint bin;         // the first bin whose sum, with all bins before it, exceeds the target
  uint64_t before;  // the sum of the bins before it
};

uint64_t sum_at(bool of_blocks, uint i) {
  return of_blocks ? join_words(list_keys[i], list_ids[i]) : join_words(bin_low[i], bin_high[i]);
}

// The same among the bins, or the blocks, from place.bin to `end`; place.before is the sum before them.
// If no running sum exceeds the target, the last one. Every subgroup does all of it.
BinPosition find_sum(bool of_blocks, BinPosition place, uint end, uint64_t target) {
  const Lanes own = subgroup_lanes();
  for (;; place.bin += own.count) {
    const uint i = place.bin + own.lane;
    const uint64_t sum = i < end ? sum_at(of_blocks, i) : 0ul;
    const bool exceeds = i < end && place.before + subgroup_running_sum64(sum) > target;
    const uint first = subgroupMin(exceeds ? i : 0xffffffffu);
    if (first < end || place.bin + own.count >= end) {
      place.bin = min(first, end - 1);
      place.before += subgroup_sum64(i < place.bin ? sum : 0ul);
      return place;
    }
    place.before += subgroup_sum64(sum);
  }
}

// REQUIRES: target < sum_bins().
BinPosition find_bin(uint64_t target) {
  BinPosition place = find_sum(true, BinPosition(0, 0), kBins / kBlockBins, target);
  place.bin *= kBlockBins;
  return find_sum(false, place, place.bin + kBlockBins, target);
}

void clear_list() {
  barrier();
  if (gl_LocalInvocationID.x == 0) list_count = 0;
  barrier();
}

// From any lane.
void add_to_list(uint key, uint id) {
  const uint at = atomicAdd(list_count, 1);
  if (at >= kListTokens) return;
  list_keys[at] = key;
  list_ids[at] = id;
}

// Sorts the list by key, largest first, then by id, smallest first. A token's rank is the number of
// tokens that come before it: fast for short lists, and a single pass.
void sort_list(uint count) {
  barrier();
  for (uint i = gl_LocalInvocationID.x; i < count; i += gl_WorkGroupSize.x) {
    const uint key = list_keys[i], id = list_ids[i];
    uint place = 0;
    for (uint j = 0; j < count; ++j)
      if (list_keys[j] > key || (list_keys[j] == key && list_ids[j] < id)) ++place;
    bin_low[place] = key;
    bin_high[place] = id;
  }
  barrier();
  for (uint i = gl_LocalInvocationID.x; i < count; i += gl_WorkGroupSize.x) {
    list_keys[i] = bin_low[i];
    list_ids[i] = bin_high[i];
  }
  barrier();
}

// The list's weights, in the memory of the bins.
uint64_t listed_weight(uint i) { return join_words(bin_low[i], bin_high[i]); }

void weigh_list(uint count, float top_logit) {
  barrier();
  for (uint i = gl_LocalInvocationID.x; i < count; i += gl_WorkGroupSize.x) {
    precise const float distance = top_logit - key_logit(list_keys[i]);
    const uint64_t weight = weight_of(distance);
    bin_low[i] = uint(weight);
    bin_high[i] = uint(weight >> 32);
  }
  barrier();
}

// The index at which the running sum of weights exceeds the target. REQUIRES: it does so before `count`.
uint walk_list(uint count, uint64_t target) {
  uint64_t sum = 0;
  for (uint i = 0; i + 1 < count; ++i) {
    sum += listed_weight(i);
    if (sum > target) return i;
  }
  return count - 1;
}

#endif
