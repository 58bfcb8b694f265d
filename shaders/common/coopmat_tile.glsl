// What kernels that make tiles of fragments share. Expects kGate, kFragmentOutputs and the params, and
// fragment_model.glsl before it where fragments are modelled.
#ifndef HEARTH_COOPMAT_TILE_GLSL
#define HEARTH_COOPMAT_TILE_GLSL

#ifndef MODEL_FRAGMENTS
uint own_subgroup() { return gl_SubgroupID; }
uint own_lane() { return gl_SubgroupInvocationID; }

// Orders shared memory within the subgroup.
void subgroup_shared_barrier() {
  controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared,
                 gl_SemanticsAcquireRelease);
}
#endif

// What a group is to do: one of `splits` shares of the k of a tile.
struct Place {
  uint row_tile, output_tile;
  uint split, splits;
  uint shared_tile;  // where kShare > 1 and splits is
};

// The row of the matrix that is column `column` of the tile from `first_output` on. With gates every
// other fragment has gates, and the one after it their ups.
uint weight_row(uint first_output, uint column) {
  if (kGate == kGateNone) return min(first_output + column, params.outputs - 1);
  const uint results = params.outputs / 2, block = column / kFragmentOutputs;
  const uint n = first_output / 2 + block / 2 * kFragmentOutputs + column % kFragmentOutputs;
  return min(n, results - 1) + block % 2 * results;
}

// For loads that meet no stores of the kernel.
layout(buffer_reference, std430, buffer_reference_align = 16) nonprivate restrict readonly buffer
    ConstantU32x4 {
  uvec4 at[];
};

#endif
