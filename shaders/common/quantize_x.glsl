// Quantizes rows of x for packed 8-bit dot products. Each piece of 32 floats becomes 16-bit integers with
// one scale, each stored as a high and a low byte, both signed:
//   value = scale * (256 * high + low)
// so that integer dot products keep 15 bits of x. All kTeams teams of a workgroup, of kTeamSubgroups
// subgroups or kTeamLanes lanes each, need the same pieces of x, so the workgroup quantizes them once.
// Expects these constants, kSubgroupSize, kHasOffset of a weight format, and x_quad(x, quad).
// REQUIRES: full subgroups of 8 lanes or more.
#ifndef HEARTH_QUANTIZE_X_GLSL
#define HEARTH_QUANTIZE_X_GLSL
#extension GL_KHR_shader_subgroup_shuffle : require

struct QuantizedPiece {
  uint high[8];  // elements 4*i to 4*i+3 are the bytes of word i, interleaved (quant/piece.h)
  uint low[8];
  float scale;
  float sum0, sum1;  // of the first and the last 16 elements, if weights have offsets
};

const float kLargestQuantized = 32512.0;  // 127 * 256: the high byte must not round up past 127

// Four floats times `factor`: x = their high bytes, y = their low bytes, interleaved. Adding 1.5 * 2^23
// leaves the rounded integer in the low bits of a float.
uvec2 quantize_quad(vec4 values, float factor) {
  const uvec4 low = floatBitsToUint(values * factor + 12582912.0), high = low + 128;
  return uvec2((high.x >> 8 & 0xffu) | (high.z & 0xff00u) | (high.y & 0xff00u) << 8 |
                   (high.w & 0xff00u) << 16,
               (low.x & 0xffu) | (low.z & 0xffu) << 8 | (low.y & 0xffu) << 16 | low.w << 24);
}

const uint kXWords = kTeamLanes * 8, kXScales = kTeamLanes * 4;
shared uint x_words[kXWords];     // [piece, word]
shared float x_scales[kXScales];  // [piece]: scale, sum0, sum1, unused

const uint kLaneQuads = 8 / kTeams;  // that a lane quantizes

// For the subgroups that quantize the same pieces: those with the same index in each team.
void quantize_barrier() {
  if (kTeams > 1) {
    barrier();
  } else {
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared,
                   gl_SemanticsAcquireRelease);
  }
}

// The first quad of the team's pieces that this lane quantizes; its others follow kSubgroupSize apart.
uint first_quad() {
  const uint team = gl_SubgroupID / kTeamSubgroups, place = gl_SubgroupID % kTeamSubgroups;
  return (place * 8 + team * kLaneQuads) * kSubgroupSize + gl_SubgroupInvocationID;
}

// Lanes write words in the order of the row, and read the words of the piece they own.
void exchange_words(uint from[kLaneQuads], uint piece, out uint to[8]) {
  const uint first = first_quad();
  quantize_barrier();  // earlier words may still be read
  [[unroll]] for (uint i = 0; i < kLaneQuads; ++i) x_words[first + i * kSubgroupSize] = from[i];
  quantize_barrier();
  [[unroll]] for (uint i = 0; i < 8; ++i) to[i] = x_words[piece * 8 + i];
}

// Quantizes piece `first` + `own` of the row at x, 0 past the last; `own` is the lane's index in its
// team. Neighbouring lanes load neighbouring floats, eight lanes find the scale of a piece, and then
// each lane reads the whole of its own piece. Every invocation of the workgroup must call it.
QuantizedPiece quantize_piece(uint64_t x, uint first, uint pieces, uint own) {
  const uint lane = gl_SubgroupInvocationID;
  vec4 values[kLaneQuads];
  [[unroll]] for (uint i = 0; i < kLaneQuads; ++i) {
    const uint quad = first * 8 + first_quad() + i * kSubgroupSize;
    values[i] = vec4(0.0);
    if (quad < pieces * 8) values[i] = x_quad(x, quad);
  }
  uint high[kLaneQuads], low[kLaneQuads];
  [[unroll]] for (uint i = 0; i < kLaneQuads; ++i) {
    const vec4 sizes = abs(values[i]);
    float most = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
    [[unroll]] for (uint distance = 1; distance < 8; distance *= 2)
      most = max(most, subgroupShuffleXor(most, distance));
    const uvec2 bytes = quantize_quad(values[i], most > 0.0 ? kLargestQuantized / most : 0.0);
    high[i] = bytes.x;
    low[i] = bytes.y;
    const uint place = (first_quad() + i * kSubgroupSize) / 8 * 4;
    if (lane % 8 == 0) x_scales[place] = most / kLargestQuantized;
    if (kHasOffset) {
      float sum = dot(values[i], vec4(1.0));
      [[unroll]] for (uint distance = 1; distance < 4; distance *= 2)
        sum += subgroupShuffleXor(sum, distance);
      if (lane % 4 == 0) x_scales[place + 1 + lane / 4 % 2] = sum;
    }
  }
  QuantizedPiece piece;
  exchange_words(high, own, piece.high);
  piece.scale = x_scales[own * 4];
  piece.sum0 = x_scales[own * 4 + 1];
  piece.sum1 = x_scales[own * 4 + 2];
  exchange_words(low, own, piece.low);
  return piece;
}

#endif
