#ifndef HEARTH_PARAMS_SAMPLE_STAGES_H
#define HEARTH_PARAMS_SAMPLE_STAGES_H
#include "common/interop.h"

HEARTH_PARAMS(SampleStages)
  address logits;           // [rows, vocab] f32, with biases and penalties applied
  address rows;             // [rows] SamplingRow
  address words;            // u32: the step's words, which hold SamplingStages
  address history_lengths;  // [slots] u32
  address history;          // [slots, history_capacity] TokenCount
  address chunks;           // [rows, chunks] SamplingChunk
  address segments;         // [rows, segments] u32: the largest key of each
  address mirostat;         // [slots] f32: mu
  address mirostat_rows;    // [rows] f32: the updated mu of rows with mirostat
  address ids;              // u32, written at each row's id_index
  address results;          // [rows] SamplingResult
  uint vocab;
  uint history_capacity;
  uint chunk_count;
  uint segment_count;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(SampleStages)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kBins, 2048)  // these two: common/sampling_list.glsl
  HEARTH_UINT(2, kListTokens, 1024)
  HEARTH_UINT(3, kScanLanes, 128)  // of sample_scan, per chunk
HEARTH_CONSTANTS_END

#endif
