// A subgroup's staging area in shared memory, through which results go from fragments to memory:
// kStagingFragments neighbouring fragments, so that their rows fill whole cache lines. Counted in vecs
// (16 bytes). Expects kStagingFragments, kFragmentRows and kFragmentOutputs.
#ifndef HEARTH_COOPMAT_STAGING_GLSL
#define HEARTH_COOPMAT_STAGING_GLSL

const uint kStagingRowQuads = kStagingFragments * kFragmentOutputs / 4;
const uint kStagingResults = kFragmentRows * kStagingRowQuads;
// From row to row: the padding of two vecs keeps eight rows of a fragment in different banks.
const uint kStagingStride = kStagingRowQuads + (kStagingFragments > 1 ? 2 : 0);
const uint kStagingVecs = kFragmentRows * kStagingStride;

#endif
