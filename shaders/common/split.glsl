// How floats become the integers of params/split_rows.h.
#ifndef HEARTH_SPLIT_GLSL
#define HEARTH_SPLIT_GLSL

const float kLargestSplit = 32512.0;  // 127 * 256: the high byte must not round up past 127

uint pack_bytes(ivec4 q) {
  return uint(q.x & 255) | uint(q.y & 255) << 8 | uint(q.z & 255) << 16 | uint(q.w) << 24;
}

// Four elements of a piece whose largest is `most`: x = their high bytes, y = their low ones.
uvec2 split_quad(vec4 values, float most) {
  const ivec4 q = ivec4(round(values * (most > 0.0 ? kLargestSplit / most : 0.0)));
  const ivec4 high = (q + 128) >> 8;
  return uvec2(pack_bytes(high), pack_bytes(q - high * 256));
}

#endif
