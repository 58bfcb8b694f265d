// A second result of kernels that make rows for matmuls: the rows in the form the matmul wants
// (RowForm in engine/ops/kernel_choice.h), so that no kernel is needed in between.
#ifndef HEARTH_ROW_FORM_GLSL
#define HEARTH_ROW_FORM_GLSL
#extension GL_KHR_shader_subgroup_shuffle : require
#include "common/halves.glsl"
#include "common/split.glsl"

const uint kFormFloats = 0, kFormHalves = 1, kFormSplit = 2;

layout(buffer_reference, std430, buffer_reference_align = 8) nonprivate writeonly buffer FormHalves {
  uvec2 at[];
};

// The lane's place in its group; with kFormSplit by subgroups, so that neighbours can be shuffled.
uint form_lane(uint form) {
  return form == kFormSplit ? gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID
                            : gl_LocalInvocationID.x;
}

// Writes elements 4 * quad to 4 * quad + 3, counted over all rows, of which there are `quads`.
// REQUIRES of kFormSplit: eight lanes from a multiple of 8 on write the eight quads of a piece at
// once; subgroups of 8 or more.
void write_form(uint form, uint64_t to, uint quad, uint quads, vec4 values) {
  if (form == kFormHalves) {
    const vec4 halves = nearest_half(values);
    FormHalves(to).at[quad] = uvec2(packHalf2x16(halves.xy), packHalf2x16(halves.zw));
  } else if (form == kFormSplit) {
    const vec4 sizes = abs(values);
    float most = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
    float sum = dot(values, vec4(1.0));
    [[unroll]] for (uint distance = 1; distance < 8; distance *= 2)
      most = max(most, subgroupShuffleXor(most, distance));
    [[unroll]] for (uint distance = 1; distance < 4; distance *= 2)
      sum += subgroupShuffleXor(sum, distance);
    const uvec2 split = split_quad(values, most);
    // Planes of 16 bytes a piece: two of high bytes, two of low ones, one of scale and sums.
    const uint pieces = quads / 8, piece = quad / 8, part = quad % 8;
    U32 words = U32(to);
    words.at[(part / 4 * pieces + piece) * 4 + part % 4] = split.x;
    words.at[((part / 4 + 2) * pieces + piece) * 4 + part % 4] = split.y;
    const uint rest = (4 * pieces + piece) * 4;
    if (part == 0) words.at[rest] = floatBitsToUint(most / kLargestSplit);
    if (part == 1) words.at[rest + 3] = 0;
    if (part % 4 == 0) words.at[rest + 1 + part / 4] = floatBitsToUint(sum);
  }
}

#endif
