// The constants of the kernels that process single tokens and can apply rope to them:
// attention_rows.comp and attention_direct.comp.
#ifndef HEARTH_ATTENTION_CONSTANTS_GLSL
#define HEARTH_ATTENTION_CONSTANTS_GLSL

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kSubgroupSize = 32;
layout(constant_id = 2) const uint kSubgroups = 4;  // per workgroup
layout(constant_id = 3) const uint kHeadSize = 128;
layout(constant_id = 4) const uint kRows = 4;          // query rows per workgroup
layout(constant_id = 5) const uint kStreamLanes = 16;  // lanes per stream, a power of two
layout(constant_id = 6) const uint kRun = 8;           // keys whose loads a stream issues together
layout(constant_id = 7) const uint kDoubleBuffer = 0;  // 1: the next run is loaded while one is used
layout(constant_id = 8) const uint kForm = 0;          // of the result (common/row_form.glsl)
layout(constant_id = 9) const uint kHeads = 1;
layout(constant_id = 10) const uint kKvHeads = 1;
layout(constant_id = 11) const float kScale = 1.0;
layout(constant_id = 12) const uint kFuseRope = 0;
// With kFuseRope, as in rope_kv.comp:
layout(constant_id = 13) const uint kRopeDims = 64;
layout(constant_id = 14) const uint kAdjacent = 0;
layout(constant_id = 15) const uint kHeadNorms = 0;
layout(constant_id = 16) const uint kLaneQuads = 1;
layout(constant_id = 17) const uint kPartials = 1;
layout(constant_id = 18) const uint kQStride = 0;
layout(constant_id = 19) const uint kKStride = 0;
layout(constant_id = 20) const uint kVStride = 0;
layout(constant_id = 21) const float kEpsilon = 1e-6;
// q, k and v are columns of one or more matrices that follow each other in memory: the first column of
// k and of v in its matrix, and the floats per row that all matrices before that one have.
layout(constant_id = 22) const uint kKColumn = 0;
layout(constant_id = 23) const uint kKFloatsBefore = 0;
layout(constant_id = 24) const uint kVColumn = 0;
layout(constant_id = 25) const uint kVFloatsBefore = 0;

#endif
