// What products do to their sums, as specialization constants.
#ifndef HEARTH_PARAMS_EPILOGUE_H
#define HEARTH_PARAMS_EPILOGUE_H
#include "common/interop.h"

// The epilogue is a sum of these.
HEARTH_CONSTANT(kEpilogueBias, 1u)
HEARTH_CONSTANT(kEpilogueSoftCap, 2u)
HEARTH_CONSTANT(kEpilogueResidual, 4u)

// How gates and their ups are combined.
HEARTH_CONSTANT(kGateNone, 0u)
HEARTH_CONSTANT(kGateSilu, 1u)
HEARTH_CONSTANT(kGateGelu, 2u)

#endif
