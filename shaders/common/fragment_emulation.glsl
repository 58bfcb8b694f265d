// Fragments emulated by plain values, with the lane layout of fragment_lanes.glsl, and the operations that
// kernels use on cooperative matrices. Subgroups of 32 are emulated too, whatever size the device has.
// Every invocation of the workgroup, of which there are at most kMostInvocations, must reach every
// product and every exchange between lanes.
#ifndef HEARTH_FRAGMENT_EMULATION_GLSL
#define HEARTH_FRAGMENT_EMULATION_GLSL

uint subgroup_id() { return gl_LocalInvocationIndex / 32; }
uint lane_id() { return gl_LocalInvocationIndex % 32; }
void subgroup_shared_barrier() { barrier(); }

#define UNROLL [[dont_unroll]]  // not unrolled, or kernels would take too long to compile
#define Fragment vec4  // columns 2 * (l % 4) and the next, of row l / 4 and of row l / 4 + 8
#define FragmentA uvec4
#define FragmentB uvec2

void set_a(out FragmentA a, uvec4 words) { a = words; }
void set_b(out FragmentB b, uvec2 words) { b = words; }

const uint kMostInvocations = 128;
shared uvec4 emulated_a[kMostInvocations];
shared uvec2 emulated_b[kMostInvocations];

Fragment coopMatMulAdd(FragmentA a, FragmentB b, Fragment sums) {
  barrier();  // the previous product's operands may still be read
  emulated_a[gl_LocalInvocationIndex] = a;
  emulated_b[gl_LocalInvocationIndex] = b;
  barrier();
  const uint first = subgroup_id() * 32, row = lane_id() / 4, pair = lane_id() % 4;
  const uint lanes = min(gl_NumWorkGroups.x + 3, 4);  // 4, but unknown to the compiler: not unrolled
  for (uint k = 0; k < lanes; ++k) {
    const uvec4 words = emulated_a[first + row * 4 + k];
    for (uint n = 0; n < 2; ++n) {
      const uvec2 column = emulated_b[first + (pair * 2 + n) * 4 + k];
      const vec2 low = unpackHalf2x16(column.x), high = unpackHalf2x16(column.y);
      sums[n] += dot(unpackHalf2x16(words.x), low) + dot(unpackHalf2x16(words.z), high);
      sums[n + 2] += dot(unpackHalf2x16(words.y), low) + dot(unpackHalf2x16(words.w), high);
    }
  }
  return sums;
}

shared float emulated_values[kMostInvocations];

// The value that `lane` of the subgroup passed.
float emulated_shuffle(float value, uint lane) {
  barrier();  // the previous values may still be read
  emulated_values[gl_LocalInvocationIndex] = value;
  barrier();
  return emulated_values[subgroup_id() * 32 + lane];
}

uint as_element(uvec4 like, float value) { return floatBitsToUint(value); }
float as_element(vec4 like, float value) { return value; }

#define gl_CooperativeMatrixLayoutRowMajor 0
// A lane's two outputs are one half of a vec. The components are constants, because with an index the
// whole vec might be written back.
#define coopMatStore(fragment, to, start, stride, layout)                              \
  for (uint half_of = 0; half_of < 2; ++half_of) {                                     \
    const uint at_row = lane_id() / 4 + half_of * 8;                                  \
    const uint at_vec = (start) + at_row * (stride) + lane_id() % 4 / 2;              \
    if (lane_id() % 2 == 0) {                                                         \
      to[at_vec].x = as_element(to[at_vec], fragment[2 * half_of]);                    \
      to[at_vec].y = as_element(to[at_vec], fragment[2 * half_of + 1]);                \
    } else {                                                                           \
      to[at_vec].z = as_element(to[at_vec], fragment[2 * half_of]);                    \
      to[at_vec].w = as_element(to[at_vec], fragment[2 * half_of + 1]);                \
    }                                                                                  \
  }
#define coopMatLoad(fragment, from, start, stride, layout)                             \
  for (uint half_of = 0; half_of < 2; ++half_of) {                                     \
    const uint at_row = lane_id() / 4 + half_of * 8;                                  \
    const vec4 loaded = from[(start) + at_row * (stride) + lane_id() % 4 / 2];        \
    fragment[2 * half_of] = lane_id() % 2 == 0 ? loaded.x : loaded.z;                 \
    fragment[2 * half_of + 1] = lane_id() % 2 == 0 ? loaded.y : loaded.w;             \
  }

#endif
