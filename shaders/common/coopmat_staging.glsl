// A subgroup's slot of shared memory, through which results leave fragments for memory: as many
// neighbouring fragments as kSlotFragments says, so that rows of them are whole lines. Counted in 16
// bytes. Expects kSlotFragments, kFragmentRows and kFragmentOutputs.
#ifndef HEARTH_COOPMAT_STAGING_GLSL
#define HEARTH_COOPMAT_STAGING_GLSL

const uint kSlotRowVecs = kSlotFragments * kFragmentOutputs / 4;
const uint kSlotResults = kFragmentRows * kSlotRowVecs;
// From row to row: with two to spare, eight rows of a fragment meet in no bank.
const uint kSlotStride = kSlotRowVecs + (kSlotFragments > 1 ? 2 : 0);
const uint kSlotVecs = kFragmentRows * kSlotStride;

#endif
