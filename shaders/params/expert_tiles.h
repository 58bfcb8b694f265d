#ifndef HEARTH_PARAMS_EXPERT_TILES_H
#define HEARTH_PARAMS_EXPERT_TILES_H
#include "common/interop.h"

HEARTH_CONSTANT(kNoExpert, 0xffffffffu)  // of a tile without rows

#endif
