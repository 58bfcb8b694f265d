// A subgroup's slot of shared memory, through which results leave fragments for memory: as many
// neighbouring fragments as kStagingFragments says, so that rows of them are whole lines. Counted in 16
// bytes. Expects kStagingFragments, kFragmentRows and kFragmentOutputs.
#ifndef HEARTH_COOPMAT_STAGING_GLSL
#define HEARTH_COOPMAT_STAGING_GLSL

const uint kStagingRowQuads = kStagingFragments * kFragmentOutputs / 4;
const uint kStagingResults = kFragmentRows * kStagingRowQuads;
// From row to row: with two to spare, eight rows of a fragment meet in no bank.
const uint kStagingStride = kStagingRowQuads + (kStagingFragments > 1 ? 2 : 0);
const uint kStagingVecs = kFragmentRows * kStagingStride;

#endif
