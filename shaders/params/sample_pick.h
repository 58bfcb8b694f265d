#ifndef HEARTH_PARAMS_SAMPLE_PICK_H
#define HEARTH_PARAMS_SAMPLE_PICK_H
#include "common/interop.h"

HEARTH_PARAMS(SamplePick)
  reads_address logits;             // [rows, vocab] f32, with biases and penalties applied
  reads_address rows;               // [rows] SamplingRow
  reads_address words;              // u32, the step's words: proposals
  updates_address history_lengths;  // [slots] u32
  updates_address history;          // [slots, history_capacity] TokenCount
  reads_address chunks;             // [rows, chunks] SamplingChunk
  reads_address segments;           // [rows, segments] u32: the largest key of each
  updates_address tallies;          // [rows] Tally (common/sampling_tally.glsl), all zero: what the workgroups
                                    // of a row find together
  updates_address ids;              // u32, written at each row's id_index; proposals may be there
  writes_address results;           // [rows] SamplingResult
  writes_address top;               // [rows, kMaxTopLogprobs] TokenLogprob
  uint vocab;
  uint history_capacity;
  uint chunk_count;
  uint segment_count;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(SamplePick)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kBins, 2048)      // these two: common/sampling_list.glsl
  HEARTH_UINT(2, kListTokens, 1024)
  HEARTH_UINT(3, kScanLanes, 128)  // of sample_scan, per chunk
HEARTH_CONSTANTS_END

#endif
