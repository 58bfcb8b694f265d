// The constants of the kernels that process single tokens and can apply rope to them:
// attention_rows.comp and attention_direct.comp.
#ifndef HEARTH_PARAMS_ATTENTION_ROWS_H
#define HEARTH_PARAMS_ATTENTION_ROWS_H
#include "params/attention.h"

HEARTH_CONSTANTS(AttentionRows)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kSubgroupSize, 32)
  HEARTH_UINT(2, kSubgroups, 4)     // per workgroup
  HEARTH_UINT(3, kHeadSize, 128)
  HEARTH_UINT(4, kRows, 4)          // query rows per workgroup
  HEARTH_UINT(5, kStreamLanes, 16)  // lanes per stream, a power of two
  HEARTH_UINT(6, kRun, 8)           // keys whose loads a stream issues together
  HEARTH_UINT(7, kDoubleBuffer, 0)  // 1: the next run is loaded while one is used
  HEARTH_OPTIONAL_FROM(8)
  HEARTH_UINT(8, kForm, 0)          // of the result (common/row_form.glsl)
  HEARTH_UINT(9, kHeads, 1)
  HEARTH_UINT(10, kKvHeads, 1)
  HEARTH_FLOAT(11, kScale, 1.0f)
  HEARTH_UINT(12, kFuseRope, 0)
  // With kFuseRope, as in rope_kv.h:
  HEARTH_UINT(13, kRopeDims, 64)
  HEARTH_UINT(14, kAdjacent, 0)
  HEARTH_UINT(15, kHeadNorms, 0)
  HEARTH_UINT(16, kLaneQuads, 1)
  HEARTH_UINT(17, kPartials, 1)
  HEARTH_UINT(18, kQStride, 0)
  HEARTH_UINT(19, kKStride, 0)
  HEARTH_UINT(20, kVStride, 0)
  HEARTH_FLOAT(21, kEpsilon, 1e-6f)
  // q, k and v are columns of one or more matrices that follow each other in memory: the first column of
  // k and of v in its matrix, and the floats per row that all matrices before that one have.
  HEARTH_UINT(22, kKColumn, 0)
  HEARTH_UINT(23, kKFloatsBefore, 0)
  HEARTH_UINT(24, kVColumn, 0)
  HEARTH_UINT(25, kVFloatsBefore, 0)
HEARTH_CONSTANTS_END

#endif
