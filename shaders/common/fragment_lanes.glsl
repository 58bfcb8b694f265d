// Fragments filled from registers, on devices where it is known which elements a lane holds; the layout
// is that of NVIDIA's devices. Lane l holds rows l / 4 and l / 4 + 8 of a fragment A, 16 x 16, and column
// l / 4 of a fragment B, 16 x 8; of the 16 inputs of either it holds 2 * (l % 4), the next one, and the
// two that are 8 further on. Of sums, 16 x 8, it holds columns 2 * (l % 4) and the next one, of row l / 4
// and then of row l / 4 + 8. Vulkan does not promise this: runtime/fragment_check.h tests it. Rows are
// rows of x and columns outputs, or the other way round.
//
// Which 16 inputs these are does not matter as long as both fragments have the same ones, so a lane may
// supply any four neighbouring inputs.
#ifndef HEARTH_FRAGMENT_LANES_GLSL
#define HEARTH_FRAGMENT_LANES_GLSL

// A lane's words of a fragment A, each of two halves, from its four inputs of each of its two rows.
uvec4 words_of_a(uvec2 upper, uvec2 lower) {
  return uvec4(upper.x, lower.x, upper.y, lower.y);
}

#ifdef EMULATE_FRAGMENTS
#include "common/fragment_emulation.glsl"
#else
#define UNROLL [[unroll]]
#define Fragment coopmat<float, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>
#define FragmentA coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define FragmentB coopmat<float16_t, gl_ScopeSubgroup, 16, 8, gl_MatrixUseB>

// In the order of the fragment's registers, so that words can be loaded straight into them.
void set_a(out FragmentA a, uvec4 words) {
  const uvec4 elements = words.xzyw;
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const f16vec2 pair = unpackFloat2x16(elements[i]);
    a[2 * i] = pair.x;
    a[2 * i + 1] = pair.y;
  }
}

// From a lane's four inputs of its column.
void set_b(out FragmentB b, uvec2 words) {
  [[unroll]] for (uint i = 0; i < 2; ++i) {
    const f16vec2 pair = unpackFloat2x16(words[i]);
    b[2 * i] = pair.x;
    b[2 * i + 1] = pair.y;
  }
}
#endif

#endif
