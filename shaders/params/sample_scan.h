#ifndef HEARTH_PARAMS_SAMPLE_SCAN_H
#define HEARTH_PARAMS_SAMPLE_SCAN_H
#include "common/interop.h"

HEARTH_PARAMS(SampleScan)
  updates_address logits;         // [rows, vocab] f32; biases and penalties are applied in place
  reads_address rows;             // [rows] SamplingRow
  reads_address biases;           // TokenBias; each row's begin at its bias_offset
  reads_address history_lengths;  // [slots] u32
  reads_address history;          // [slots, history_capacity] TokenCount
  writes_address chunks;          // [rows, chunks] SamplingChunk
  writes_address segments;        // [rows, segments] u32: the largest key of each
  writes_address tallies;         // [rows, tally_words] u32, see sample_pick.h
  updates_address counts;         // [rows] u32, zero before and after; this and the next two with kPickGreedy
  updates_address ids;            // u32, written at each row's id_index; proposals may be there
  writes_address results;         // [rows] SamplingResult
  reads_address words;            // u32, the step's words: proposals, masks and DRY penalties
  uint vocab;
  uint history_capacity;
  uint tally_words;               // 0: there are none
HEARTH_PARAMS_END

HEARTH_CONSTANTS(SampleScan)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kLaneSegments, 1)
  // Lanes per segment: several finish a single row sooner. REQUIRES: 1, or a divisor of kSegmentQuads with
  // kLaneSegments == 1.
  HEARTH_UINT(2, kSegmentLanes, 1)
  // 1: every row is greedy and wants nothing else, so sample_pick does not run.
  HEARTH_UINT(3, kPickGreedy, 0)
  HEARTH_UINT(4, kExtras, 0)  // 1: rows may have paths, DRY penalties and masks
  HEARTH_OPTIONAL_FROM(5)
  HEARTH_UINT(5, kStages, 0)  // 1: rows may have stages
HEARTH_CONSTANTS_END

#endif
