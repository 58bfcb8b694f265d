#ifndef HEARTH_PARAMS_HISTORY_COMMIT_H
#define HEARTH_PARAMS_HISTORY_COMMIT_H
#include "common/interop.h"

HEARTH_PARAMS(CommitHistory)
  address commits;          // [commits] HistoryCommit
  address words;            // u32: the tokens
  address history_lengths;  // [slots] u32
  address history;          // [slots, history_capacity] TokenCount
  uint history_capacity;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(CommitHistory)
  HEARTH_WORKGROUP_SIZE
HEARTH_CONSTANTS_END

#endif
