// The arguments of the kernels of products: the same source, compiled with EXPERTS, computes those of experts.
#ifndef HEARTH_PARAMS_PRODUCT_H
#define HEARTH_PARAMS_PRODUCT_H
#ifdef EXPERTS
#include "params/experts.h"
#else
#include "params/matmul.h"
#endif

// More constants of the kernels in which a tile is a pair of a row and an expert.
#if defined(__cplusplus) || (defined(EXPERT_ROWS) && !defined(EXPERT_SUMS))
#define HEARTH_ROUTE_CONSTANTS \
  HEARTH_UINT(10, kRouteUsed, 0) /* experts per row, chosen here; 0: see tiles */ \
  HEARTH_UINT(11, kLaneExperts, 1) \
  HEARTH_UINT(12, kOverAll, 0) /* scales are shares of all experts */
#else
#define HEARTH_ROUTE_CONSTANTS
#endif

#endif
