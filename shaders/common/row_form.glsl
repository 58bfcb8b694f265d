// The form in which a kernel writes rows for a matmul (RowForm in engine/ops/row_form.h): f32, or
// f16 if the matmul wants it, which saves a conversion kernel in between.
#ifndef HEARTH_ROW_FORM_GLSL
#define HEARTH_ROW_FORM_GLSL
#include "common/halves.glsl"

const uint kFormFloats = 0, kFormHalves = 1;

layout(buffer_reference, std430, buffer_reference_align = 8) nonprivate writeonly buffer FormHalves {
  uvec2 at[];
};

// Writes elements 4 * quad to 4 * quad + 3, counted over all rows, as f16.
void write_halves(uint64_t to, uint quad, vec4 values) {
  const vec4 halves = nearest_half(values);
  FormHalves(to).at[quad] = uvec2(packHalf2x16(halves.xy), packHalf2x16(halves.zw));
}

#endif
