// Passes over the tokens of a row in memory that the stages so far have kept. A pass that finds few enough
// of them lists them in shared memory, where stages_list.glsl continues. All results are sums of integers,
// smallest or largest values, so they do not depend on who adds what when. Every invocation of the
// workgroup must call these functions, with the same arguments.
//
// Include after sampling_list.glsl, sampling_summary.glsl, stages_sums.glsl and stages_warp.glsl.
#ifndef HEARTH_STAGES_TOKENS_GLSL
#define HEARTH_STAGES_TOKENS_GLSL

// Whether no token of the segment can matter: all keys are below `least_key`, or no id begins with `digits`
// (all but its last `shift` bits). The quads of kScanLanes neighbouring segments are interleaved.
bool skips_segment(Row row, uint segment, uint least_key, bool by_id, uint digits, uint shift) {
  const uint together = kScanLanes * kSegmentQuads * 4;
  const uint first_id = segment / kScanLanes * together, last_id = first_id + together - 1;
  if (by_id && ((last_id >> shift) < digits || (first_id >> shift) > digits)) return true;
  return U32(row.segments).at[segment] < least_key;
}

// The keys and ids of four tokens. Places without a token have a key that is never kept.
uvec4 load_keys(Row row, uint segment, uint j, out uvec4 ids) {
  const uint quad = segment_quad(segment, j, kScanLanes);
  ids = quad * 4 + uvec4(0, 1, 2, 3);
  return quad_keys(load_quad(row.logits, quad, row.vocab));
}

struct Measures {
  uint count;
  uint highest, lowest;  // keys
  uint64_t weight;       // kMeasureWeights: of all kept tokens
  uint64_t moment;       // and the sum of weight * distance, in the same units
  // kMeasureSpread: the sums of the distances in kSigmaUnits, and of their squares.
  uint64_t steps, squares;
};

const uint kMeasureKeys = 0;  // only the first three, which is much less work
const uint kMeasureWeights = 1;
const uint kMeasureSpread = 2;

// The sums of all subgroups: the count, the highest key, the complement of the lowest one, and eight limbs
// of 16 bits, so that no sum of up to 1024 lanes overflows.
shared uint measured[11];

void measure_limbs(uint first, uint64_t value) {
  const uvec4 limbs = subgroupAdd(limbs_of_64(value));
  if (!subgroupElect()) return;
  [[unroll]] for (uint i = 0; i < 4; ++i) atomicAdd(measured[first + i], limbs[i]);
}

uint64_t measured_limbs(uint first) {
  return join_64(uvec4(measured[first], measured[first + 1], measured[first + 2],
                       measured[first + 3]));
}

// Measures the kept tokens, and lists up to kListTokens of them, in no order.
Measures measure(Row row, Kept kept, uint what) {
  Measures sums = Measures(0, 0, 0xffffffffu, 0ul, 0ul, 0ul, 0ul);
  barrier();
  if (gl_LocalInvocationID.x == 0) {
    list_count = 0;
    [[unroll]] for (uint i = 0; i < 11; ++i) measured[i] = 0;
  }
  barrier();
  bool list = true;
  for (uint s = gl_LocalInvocationID.x; s < row.segment_count; s += gl_WorkGroupSize.x) {
    if (skips_segment(row, s, kept.last.key, false, 0, 0)) continue;
    uvec2 limbs = uvec2(0);  // of this segment's weights
    uvec4 next_ids, next = load_keys(row, s, 0, next_ids);
    [[dont_unroll]] for (uint j = 0; j < kSegmentQuads; ++j) {
      const uvec4 keys = next, ids = next_ids;
      if (j + 1 < kSegmentQuads) next = load_keys(row, s, j + 1, next_ids);
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        if (!holds(kept, keys[c], ids[c])) continue;
        ++sums.count;
        sums.highest = max(sums.highest, keys[c]);
        sums.lowest = min(sums.lowest, keys[c]);
        // A lane that finds the list full adds nothing more to it.
        if (list) {
          const uint at = atomicAdd(list_count, 1);
          list = at < kListTokens;
          if (list) {
            list_keys[at] = keys[c];
            list_ids[at] = ids[c];
          }
        }
        if (what == kMeasureKeys) continue;
        const float distance = kept_distance(kept, row.top_logit, keys[c]);
        if (what == kMeasureSpread) {
          const uint steps = spread_steps(distance);
          sums.steps += steps;
          sums.squares += uint64_t(steps) * steps;
        } else {
          const uvec2 weight = weight_limbs(distance);
          limbs += weight;
          sums.moment += weight_moment(join_limbs(weight), distance);
        }
      }
    }
    sums.weight += join_limbs(limbs);
  }
  const uint count = subgroupAdd(sums.count), highest = subgroupMax(sums.highest);
  const uint lowest = subgroupMin(sums.lowest);
  if (subgroupElect()) {
    atomicAdd(measured[0], count);
    atomicMax(measured[1], highest);
    atomicMax(measured[2], ~lowest);
  }
  if (what != kMeasureKeys) {
    const bool weights = what == kMeasureWeights;
    measure_limbs(3, weights ? sums.weight : sums.steps);
    measure_limbs(7, weights ? sums.moment : sums.squares);
  }
  barrier();  // the list is complete, too
  const uint64_t first = measured_limbs(3), second = measured_limbs(7);
  return Measures(measured[0], measured[1], ~measured[2], first, second, first, second);
}

// The same of all tokens, from what sample_scan found in the chunks. Every subgroup does all of it.
// Distances of the spread are exact only if none is beyond kSigmaReach.
Measures measure_chunks(Row row, uint64_t chunk_sums, uint chunks, uint best_key) {
  Measures all = Measures(0, best_key, row.lowest_key, 0ul, 0ul, 0ul, 0ul);
  const Lanes own = subgroup_lanes();
  for (uint c = own.lane; c < chunks; c += own.count) {
    const SamplingChunk chunk = SamplingChunks(row.chunks).at[c];
    const SamplingSums sums = SamplingSumsOfChunks(chunk_sums).at[c];
    if (sums.count == 0) continue;
    const float down = original_distance(row.top_logit, chunk.best_key);
    all.count += sums.count;
    const uint64_t down_steps = spread_steps(down);
    const uint64_t steps = join_words(sums.steps_low, sums.steps_high);
    all.steps += steps + sums.count * down_steps;
    all.squares += join_words(sums.squares_low, sums.squares_high) + 2 * down_steps * steps +
                   sums.count * down_steps * down_steps;
    if (down >= kMaxDistance) continue;
    // exp(-down) in units of 2^-30. The sums of a chunk are below 2^52.
    const uint64_t share = uint64_t(uint(exp_minus(down) * float(1u << 30))) << 32;
    const uint64_t weight =
        multiply_high(join_limbs(uvec2(chunk.sum_high, chunk.sum_low)) << 2, share);
    all.weight += weight;
    all.moment += multiply_high(join_words(sums.moment_low, sums.moment_high) << 2, share) +
                  multiply_high(weight << 12, uint64_t(weighted_place(down)) << 32);
  }
  all.count = subgroupAdd(all.count);
  all.weight = subgroup_sum64(all.weight);
  all.moment = subgroup_sum64(all.moment);
  all.steps = subgroup_sum64(all.steps);
  all.squares = subgroup_sum64(all.squares);
  return all;
}

uint distance_bin(float distance, float scale) {
  precise const float place = min(distance * scale, float(kBins - 1));
  return uint(int(place));
}

// Lists the first `wanted` of the kept tokens and some others, in no order, and narrows `kept` to them.
// Returns their number, or more than kListTokens if they do not fit. If there are fewer tokens, lists all.
//
// A segment's largest key is that of a token. So if as many segments as tokens are wanted reach a key, no
// wanted token is below it, and only these segments have to be read.
uint list_first(Row row, inout Kept kept, uint wanted) {
  const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
  const uint lowest = max(kept.last.key, row.lowest_key);
  const float span = min(original_distance(row.top_logit, lowest), kMaxDistance);
  const float scale = span > 1e-30 ? float(kBins) / span : 0.0;
  clear_bins();
  for (uint s = lane; s < row.segment_count; s += lanes) {
    const uint key = U32(row.segments).at[s];
    if (key > kept.last.key && key <= kept.first)
      atomicAdd(bin_low[distance_bin(original_distance(row.top_logit, key), scale)], 1);
  }
  const uint last_bin = sum_bins() < wanted ? kBins - 1 : find_bin(wanted - 1).bin;
  // The bins become a list of the segments to be read.
  clear_list();
  uint least = 0xffffffffu;
  for (uint s = lane; s < row.segment_count; s += lanes) {
    const uint key = U32(row.segments).at[s];
    if (key < kept.last.key) continue;
    if (distance_bin(original_distance(row.top_logit, key), scale) > last_bin) continue;
    if (last_bin < kBins - 1) least = min(least, key);
    const uint at = atomicAdd(list_count, 1);
    if (at < kBins) bin_low[at] = s;
  }
  least = workgroup_min(least);
  barrier();
  const uint segments = list_count;
  if (segments > kBins) return 0xffffffffu;
  if (least != 0xffffffffu && least > kept.last.key) kept.last = Cut(least, 0xffffffffu);
  clear_list();
  for (uint i = lane; i < segments * kSegmentQuads; i += lanes) {
    uvec4 ids;
    const uvec4 keys = load_keys(row, bin_low[min(i / kSegmentQuads, kBins - 1)], i % kSegmentQuads, ids);
    [[unroll]] for (uint c = 0; c < 4; ++c)
      if (holds(kept, keys[c], ids[c])) add_to_list(keys[c], ids[c]);
  }
  barrier();
  return list_count;
}

// ln of a sum of exp(-distance).
float log_of_weight(uint64_t weight) { return log(float(weight) * exp2(-float(kWeightBits))); }

float log_weight(Measures sums) { return log_of_weight(sums.weight); }

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

// What a search counts up to: a number, or a share of the sum over all tokens kept.
const uint kTargetNumber = 0;
const uint kTargetShare = 1;  // the last token of the first ones that together have this share

// A search for the token at which the running sum of weights, or the running count, exceeds a target.
struct Selection {
  uint order;
  bool weighted;
  uint target_kind;
  uint64_t target;  // kTargetNumber
  float share;      // kTargetShare
  float center;     // kByDeviation
  uint bits;        // ordinals are below 2^bits
};

// The sum of weights that `share` of them keeps, less one: the running sum exceeds it at the last token
// kept. At least one token is kept.
uint64_t last_of_share(uint64_t weight, float share) {
  if (share >= 1.0) return weight - 1;
  const uint64_t kept = multiply_high(weight, uint64_t(uint(share * 65536.0 * 65536.0)) << 32);
  return max(kept, 1ul) - 1;
}

uint64_t target_of(Selection wanted, uint64_t total) {
  return wanted.target_kind == kTargetShare ? last_of_share(total, wanted.share) : wanted.target;
}

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
void add_quad(Selection wanted, Row row, Kept kept, uvec4 keys, uvec4 ids, uint bin) {
  uvec2 amount = uvec2(0);
  [[unroll]] for (uint c = 0; c < 4; ++c)
    if (holds(kept, keys[c], ids[c]))
      amount += amount_of(wanted, kept_distance(kept, row.top_logit, keys[c]));
  if (subgroupMin(bin) == subgroupMax(bin)) {
    amount = subgroupAdd(amount);
    if (subgroupElect()) add_to_bin(bin, join_limbs(amount));
  } else {
    add_to_bin(bin, join_limbs(amount));
  }
}

// Finds the ordinal by its digits, the highest first: each pass adds up the tokens that have the digits
// found so far, by their next digit.
Selected select(Row row, Kept kept, Selection wanted) {
  Selected selected = Selected(false, 0, 0ul, 0ul);
  const uint digit_bits = bits_of(kBins) - 1;
  const bool by_id = wanted.order == kById;
  uint shift = wanted.bits;  // of the digits found so far
  while (shift > 0) {
    const uint width = min(digit_bits, shift), rest = shift - width;
    // The ids of a quad differ in their lowest two bits.
    const bool quads_in_bins = by_id && rest >= 2;
    const bool some_digits = shift < 32;
    // Keys below those with the digits so far, in the row's order, need not be read.
    uint least_key = kept.last.key;
    if (wanted.order == kByKey && some_digits) {
      const uint64_t reach = (uint64_t(selected.ordinal) + 1) << shift;
      if (reach <= kept.first) least_key = max(least_key, kept.first - uint(reach) + 1);
    }
    clear_bins();
    for (uint s = gl_LocalInvocationID.x; s < row.segment_count; s += gl_WorkGroupSize.x) {
      if (skips_segment(row, s, least_key, by_id && some_digits, selected.ordinal, shift)) continue;
      uvec4 next_ids, next = load_keys(row, s, 0, next_ids);
      [[dont_unroll]] for (uint j = 0; j < kSegmentQuads; ++j) {
        const uvec4 keys = next, ids = next_ids;
        if (j + 1 < kSegmentQuads) next = load_keys(row, s, j + 1, next_ids);
        if (quads_in_bins) {
          if (some_digits && (ids.x >> shift) != selected.ordinal) continue;
          add_quad(wanted, row, kept, keys, ids, (ids.x >> rest) & ((1u << width) - 1));
          continue;
        }
        [[unroll]] for (uint c = 0; c < 4; ++c) {
          if (!holds(kept, keys[c], ids[c])) continue;
          const float distance = kept_distance(kept, row.top_logit, keys[c]);
          if (wanted.weighted && distance >= kMaxDistance) continue;
          const uint ordinal = ordinal_of(wanted, kept, keys[c], ids[c], distance);
          if (some_digits && (ordinal >> shift) != selected.ordinal) continue;
          const uint bin = (ordinal >> rest) & ((1u << width) - 1);
          add_to_bin(bin, join_limbs(amount_of(wanted, distance)));
        }
      }
    }
    const uint64_t sum = sum_bins();
    if (shift == wanted.bits) selected.before = target_of(wanted, sum);
    if (selected.before >= sum) return selected;  // there are fewer tokens than that
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
