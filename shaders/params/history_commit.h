#ifndef HEARTH_PARAMS_HISTORY_COMMIT_H
#define HEARTH_PARAMS_HISTORY_COMMIT_H
#include "common/interop.h"

HEARTH_PARAMS(CommitHistory)
  reads_address commits;            // [commits] HistoryCommit
  reads_address words;              // u32: the tokens
  updates_address history_lengths;  // [slots] u32
  updates_address history;          // [slots, history_capacity] TokenCount
  uint history_capacity;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(CommitHistory)
  HEARTH_WORKGROUP_SIZE
HEARTH_CONSTANTS_END

#endif
