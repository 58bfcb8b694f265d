// Integer division rounded upwards, as divide_up() of runtime/rounding.h. A macro, because a call is no constant
// expression, and many uses are in constants derived from specialization constants. REQUIRES: b is not 0, and
// a + b - 1 does not overflow.
#ifndef HEARTH_ROUNDING_GLSL
#define HEARTH_ROUNDING_GLSL

#define DIVIDE_UP(a, b) (((a) + (b) - 1) / (b))

#endif
