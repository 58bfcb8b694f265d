// Draws a token from all tokens of a row that a cut keeps, in the order of ids: the sums of weights of
// blocks of ids tell which block it is in, the sums of the block's quads which quad. Nothing is sorted,
// and no two lanes add to the same sum. Every invocation of the workgroup must call these functions.
//
// Include after sampling_search.glsl and params/sample_pick.h; the bins of sampling_list.glsl hold the
// sums. REQUIRES: kBins is 256 or more; chunks are no smaller than blocks.
#ifndef HEARTH_SAMPLING_DRAW_GLSL
#define HEARTH_SAMPLING_DRAW_GLSL

const uint kBlockQuads = 256;  // so that 262,144 tokens are 256 blocks

// The weights of a row's tokens at a temperature; tokens that the cut drops have weight 0.
struct Distribution {
  Row row;
  Cut cut;
  float inverse_temperature;
};

uvec2 token_weight(Distribution distribution, uint key, uint id) {
  if (!is_kept(distribution.cut, key, id)) return uvec2(0);
  precise const float distance =
      distance_of(distribution.row, key) * distribution.inverse_temperature;
  return weight_limbs(distance);
}

// The limbs of the sum of a quad's weights, and the number of its tokens that are kept.
uvec3 weigh_quad(Distribution distribution, uint quad) {
  const uvec4 keys = quad_keys(load_quad(distribution.row.logits, quad, distribution.row.vocab));
  uvec3 sum = uvec3(0);
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    const uint id = quad * 4 + c;
    sum += uvec3(token_weight(distribution, keys[c], id),
                 is_kept(distribution.cut, keys[c], id) ? 1u : 0u);
  }
  return sum;
}

// An upper bound for the keys of a block: the largest of the one or two chunks it is in.
uint largest_key(Row row, uint block) {
  const uint tokens = kBlockQuads * 4, last = params.chunk_count - 1;
  SamplingChunks chunks = SamplingChunks(row.chunks);
  return max(chunks.at[min(block * tokens / params.chunk_tokens, last)].best_key,
             chunks.at[min((block * tokens + tokens - 1) / params.chunk_tokens, last)].best_key);
}

void set_bin(uint bin, uvec2 limbs) {
  const uint64_t weight = join_limbs(limbs);
  bin_low[bin] = uint(weight);
  bin_high[bin] = uint(weight >> 32);
}

// Writes the sums of every `groups`-th block from `group` on to the bins of the same number, one
// subgroup per block; all other bins are 0. Returns how many of these blocks' tokens are kept.
uint weigh_blocks(Distribution distribution, uint group, uint groups) {
  clear_bins();
  uint tokens = 0;
  // Counts the lanes that exist: a subgroup may have fewer than gl_SubgroupSize.
  const uint lanes = subgroupAdd(1u), lane = subgroupExclusiveAdd(1u);
  const uint blocks = (distribution.row.vocab + kBlockQuads * 4 - 1) / (kBlockQuads * 4);
  for (uint block = gl_SubgroupID * groups + group; block < blocks;
       block += gl_NumSubgroups * groups) {
    if (largest_key(distribution.row, block) < distribution.cut.key) continue;
    uvec3 sum = uvec3(0);
    [[dont_unroll]] for (uint q = lane; q < kBlockQuads; q += lanes)
      sum += weigh_quad(distribution, block * kBlockQuads + q);
    const uvec2 limbs = uvec2(subgroupAdd(sum.x), subgroupAdd(sum.y));
    if (subgroupElect()) set_bin(block, limbs);
    tokens += sum.z;
  }
  return workgroup_sum(tokens);
}

struct Drawn {
  uint key, id;
};

// The token at which the running sum of weights exceeds the target. REQUIRES: the bins hold the sums of
// all blocks, and sum_bins() was called.
Drawn draw_token(Distribution distribution, uint64_t target) {
  const BinPosition block = find_bin(target);
  target -= block.before;
  const uint first = block.bin * kBlockQuads;
  clear_bins();
  for (uint q = gl_LocalInvocationID.x; q < kBlockQuads; q += gl_WorkGroupSize.x)
    set_bin(q, weigh_quad(distribution, first + q).xy);
  sum_bins();
  const BinPosition place = find_bin(target);
  target -= place.before;
  const uint quad = first + place.bin;
  const uvec4 keys = quad_keys(load_quad(distribution.row.logits, quad, distribution.row.vocab));
  uint c = 0;
  for (; c < 3; ++c) {
    const uint64_t weight = join_limbs(token_weight(distribution, keys[c], quad * 4 + c));
    if (target < weight) break;
    target -= weight;
  }
  return Drawn(keys[c], quad * 4 + c);
}

#endif
