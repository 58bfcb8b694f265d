// Passes over the tokens that the stages so far have kept: over the row in memory, until they are few
// enough for a list in shared memory, and then over the list, which is in no order. All results are sums
// of integers, smallest or largest values, so they do not depend on who adds what when. Every invocation
// of the workgroup must call these functions, with the same arguments.
//
// Include after sampling_list.glsl, of which only the bins are used, and stages_warp.glsl.
#ifndef HEARTH_STAGES_TOKENS_GLSL
#define HEARTH_STAGES_TOKENS_GLSL

layout(constant_id = 3) const uint kScanLanes = 128;  // sample_scan's

shared uint kept_keys[kListTokens], kept_ids[kListTokens];
shared uint kept_count;  // tokens found for the list; if more than kListTokens, it is not used

struct Source {
  Row row;
  bool listed;  // read from the list
  uint count;   // of the list
};

uint64_t workgroup_sum64(uint64_t value) {
  // Limbs of 16 bits, so that no sum of up to 1024 lanes overflows.
  const uvec2 low = workgroup_sum(uvec2(uint(value) & 0xffffu, uint(value) >> 16));
  const uvec2 high = workgroup_sum(uvec2(uint(value >> 32) & 0xffffu, uint(value >> 48)));
  return uint64_t(low.x) + (uint64_t(low.y) << 16) + (uint64_t(high.x) << 32) +
         (uint64_t(high.y) << 48);
}

// A source is read in groups, one lane each: a segment of the row, or four tokens of the list.
uint group_count(Source source) {
  return source.listed ? (source.count + 3) / 4 : source.row.segment_count;
}
uint group_quads(Source source) { return source.listed ? 1 : kSegmentQuads; }
bool skips_group(Source source, uint group, uint least_key) {
  return !source.listed && U32(source.row.segments).at[group] < least_key;
}

// The keys and ids of four tokens. Places without a token have a key that is never kept.
uvec4 load_keys(Source source, uint group, uint j, out uvec4 ids) {
  if (source.listed) {
    uvec4 keys;
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      const uint at = min(group * 4 + c, kListTokens - 1);
      keys[c] = group * 4 + c < source.count ? kept_keys[at] : kMinusInfinityKey;
      ids[c] = kept_ids[at];
    }
    return keys;
  }
  const uint quad = segment_quad(group, j, kScanLanes);
  ids = quad * 4 + uvec4(0, 1, 2, 3);
  return quad_keys(load_quad(source.row.logits, quad, source.row.vocab));
}

struct Measures {
  uint count;
  uint highest, lowest;  // keys
  uint64_t weight;       // of all kept tokens
  uint64_t moment;       // sum of weight * distance, in the same units
  // With `spread`, instead of the two before: the sums of the distances in kSigmaUnits, and of their
  // squares.
  uint64_t steps, squares;
};

const float kSigmaUnits = 16384.0;
const float kSigmaReach = 256.0;  // distances beyond this count as this, so that the sums fit

// Measures the kept tokens, and lists them if `list` is set and they are few enough.
Measures measure(Source source, Kept kept, bool spread, bool list) {
  Measures sums = Measures(0, 0, 0xffffffffu, 0ul, 0ul, 0ul, 0ul);
  barrier();
  if (gl_LocalInvocationID.x == 0) kept_count = 0;
  barrier();
  const uint groups = group_count(source), quads = group_quads(source);
  for (uint g = gl_LocalInvocationID.x; g < groups; g += gl_WorkGroupSize.x) {
    if (skips_group(source, g, kept.last.key)) continue;
    [[dont_unroll]] for (uint j = 0; j < quads; ++j) {
      uvec4 ids;
      const uvec4 keys = load_keys(source, g, j, ids);
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        if (!holds(kept, keys[c], ids[c])) continue;
        ++sums.count;
        sums.highest = max(sums.highest, keys[c]);
        sums.lowest = min(sums.lowest, keys[c]);
        const float distance = kept_distance(kept, source.row.top_logit, keys[c]);
        if (spread) {
          const uint step = uint(int(min(distance, kSigmaReach) * kSigmaUnits + 0.5));
          sums.steps += step;
          sums.squares += uint64_t(step) * step;
        } else {
          const uint64_t weight = weight_of(distance);
          const uint place = uint(int(min(distance, kMaxDistance) * float(1u << 20) + 0.5));
          sums.weight += weight;
          sums.moment += (weight * place) >> 20;
        }
        // Once the list is too long, nobody adds to it.
        if (list && kept_count <= kListTokens) {
          const uint at = atomicAdd(kept_count, 1);
          if (at < kListTokens) {
            kept_keys[at] = keys[c];
            kept_ids[at] = ids[c];
          }
        }
      }
    }
  }
  sums.count = workgroup_sum(sums.count);
  sums.highest = workgroup_max(sums.highest);
  sums.lowest = workgroup_min(sums.lowest);
  if (spread) {
    sums.steps = workgroup_sum64(sums.steps);
    sums.squares = workgroup_sum64(sums.squares);
  } else {
    sums.weight = workgroup_sum64(sums.weight);
    sums.moment = workgroup_sum64(sums.moment);
  }
  barrier();  // the list is complete
  return sums;
}

// ln of the sum of exp(-distance).
float log_weight(Measures sums) { return log(float(sums.weight) * exp2(-float(kWeightBits))); }

float mean_distance(Measures sums) { return float(sums.moment) / float(sums.weight); }

float entropy(Measures sums) { return log_weight(sums) + mean_distance(sums); }

// The standard deviation of the distances, from exact sums: differences wrap around, their result fits.
float deviation(Measures sums) {
  const uint64_t mean = sums.steps / sums.count;
  const uint64_t squares = sums.squares + sums.count * mean * mean - 2 * mean * sums.steps;
  return sqrt(float(squares) / float(sums.count)) / kSigmaUnits;
}

// Bits to tell the numbers up to `most` apart; at least one.
uint bits_of(uint most) { return uint(findMSB(most | 1) + 1); }

const uint kByKey = 0;        // the row's order, largest key first; equal keys have equal ordinals
const uint kById = 1;
const uint kByDeviation = 2;  // by how far the distance is from `center`, the nearest first

// A search for the token at which the running sum of weights, or the running count, exceeds a target.
struct Selection {
  uint order;
  bool weighted;
  uint64_t target;
  float center;
  uint bits;  // ordinals are below 2^bits
};

// Deviations up to this are equal. Ordinals begin here, so that they need fewer bits.
const uint kLeastDeviation = 0x30000000u;  // 4.7e-10
const uint kDeviationBits = 29;

uint deviation_ordinal(float deviation) {
  return max(floatBitsToUint(deviation), kLeastDeviation) - kLeastDeviation;
}

uint ordinal_of(Selection wanted, Kept kept, uint key, uint id, float distance) {
  if (wanted.order == kByKey) return kept.first - key;
  if (wanted.order == kById) return id;
  precise const float deviation = abs(distance - wanted.center);
  return deviation_ordinal(min(deviation, kMostDistance));
}

struct Selected {
  bool found;
  uint ordinal;
  uint64_t before;  // what is left of the target after all tokens with smaller ordinals
  uint64_t sum;     // of the tokens with this ordinal
};

// What a token adds to a sum, as limbs.
uvec2 amount_of(Selection wanted, float distance) {
  return wanted.weighted ? weight_limbs(distance) : uvec2(0, 1);
}

// Adds the tokens of a quad of the row, which are all in one bin. Neighbouring lanes have neighbouring
// ids, so they usually add to the same bin, and would wait for each other.
void add_quad(Selection wanted, Source source, Kept kept, uvec4 keys, uvec4 ids, uint bin) {
  uvec2 amount = uvec2(0);
  [[unroll]] for (uint c = 0; c < 4; ++c)
    if (holds(kept, keys[c], ids[c]))
      amount += amount_of(wanted, kept_distance(kept, source.row.top_logit, keys[c]));
  if (subgroupMin(bin) == subgroupMax(bin)) {
    amount = subgroupAdd(amount);
    if (subgroupElect()) add_to_bin(bin, join_limbs(amount));
  } else {
    add_to_bin(bin, join_limbs(amount));
  }
}

// Finds the ordinal by its digits, the highest first: each pass adds up the tokens that have the digits
// found so far, by their next digit.
Selected select(Source source, Kept kept, Selection wanted) {
  Selected selected = Selected(false, 0, wanted.target, 0ul);
  const uint digit_bits = bits_of(kBins) - 1;
  const uint groups = group_count(source), quads = group_quads(source);
  uint shift = wanted.bits;  // of the digits found so far
  while (shift > 0) {
    const uint width = min(digit_bits, shift), rest = shift - width;
    // The ids of a quad differ in their lowest two bits.
    const bool quads_in_bins = wanted.order == kById && !source.listed && rest >= 2;
    clear_bins();
    for (uint g = gl_LocalInvocationID.x; g < groups; g += gl_WorkGroupSize.x) {
      if (skips_group(source, g, kept.last.key)) continue;
      [[dont_unroll]] for (uint j = 0; j < quads; ++j) {
        uvec4 ids;
        const uvec4 keys = load_keys(source, g, j, ids);
        if (quads_in_bins) {
          if (shift < 32 && (ids.x >> shift) != selected.ordinal) continue;
          add_quad(wanted, source, kept, keys, ids, (ids.x >> rest) & ((1u << width) - 1));
          continue;
        }
        [[unroll]] for (uint c = 0; c < 4; ++c) {
          if (!holds(kept, keys[c], ids[c])) continue;
          const float distance = kept_distance(kept, source.row.top_logit, keys[c]);
          if (wanted.weighted && distance >= kMaxDistance) continue;
          const uint ordinal = ordinal_of(wanted, kept, keys[c], ids[c], distance);
          if (shift < 32 && (ordinal >> shift) != selected.ordinal) continue;
          const uint bin = (ordinal >> rest) & ((1u << width) - 1);
          add_to_bin(bin, join_limbs(amount_of(wanted, distance)));
        }
      }
    }
    if (selected.before >= sum_bins()) return selected;  // there are fewer tokens than that
    const BinPosition place = find_bin(selected.before);
    selected.before -= place.before;
    selected.ordinal = (selected.ordinal << width) | place.bin;
    selected.sum = join_words(bin_low[place.bin], bin_high[place.bin]);
    shift -= width;
  }
  selected.found = true;
  return selected;
}

#endif
