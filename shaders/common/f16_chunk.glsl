// Eight F16 weights from a 16-byte load, and their product with eight floats.
#ifndef HEARTH_F16_CHUNK_GLSL
#define HEARTH_F16_CHUNK_GLSL

float dot_f16_chunk(uvec4 w, vec4 x0, vec4 x1) {
  return dot(vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y)), x0) +
         dot(vec4(unpackHalf2x16(w.z), unpackHalf2x16(w.w)), x1);
}

#endif
