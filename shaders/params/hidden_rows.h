// Hidden states that are kept from step to step, for contrastive search: those of token `position` of
// the sequence in `slot` are in page position / kHiddenPageTokens of that slot, each divided by its
// length, as f16.
#ifndef HEARTH_PARAMS_HIDDEN_ROWS_H
#define HEARTH_PARAMS_HIDDEN_ROWS_H
#include "common/interop.h"

HEARTH_CONSTANT(kHiddenPageTokens, 256u)
HEARTH_CONSTANT(kNotKept, 0xffffffffu)

// Where the hidden state of a row is kept, and which one is copied within the same slot.
HEARTH_STRUCT(HiddenPlace)
  uint slot;
  uint position;  // kNotKept: nowhere
  uint from, to;  // positions of a copy; from = 0: none
HEARTH_STRUCT_END

// A row whose hidden state is compared with those of a sequence's first tokens.
HEARTH_STRUCT(HiddenComparison)
  uint row;     // of the step
  uint slot;    // of the sequence
  uint tokens;  // 0: padding of the list, skipped
HEARTH_STRUCT_END

// A comparison is shared by this many workgroups; each writes the largest similarity that it found.
HEARTH_CONSTANT(kComparisonParts, 32u)
HEARTH_CONSTANT(kComparisonRun, 4u)  // neighbouring tokens that a subgroup compares at once

#endif
