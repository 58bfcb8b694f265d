#ifndef HEARTH_PARAMS_MIX_LOGITS_H
#define HEARTH_PARAMS_MIX_LOGITS_H
#include "common/interop.h"

HEARTH_PARAMS(MixLogits)
  updates_address logits;      // [rows, vocab] f32; rows with kSamplingMix are changed in place
  reads_address other_logits;  // [other rows, vocab] f32: another model's
  reads_address rows;          // [rows] SamplingRow
  reads_address biases;        // TokenBias; each row's begin at its bias_offset
  reads_address words;         // u32, the step's words: masks
  uint vocab;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(MixLogits)
  HEARTH_WORKGROUP_SIZE
HEARTH_CONSTANTS_END

#endif
