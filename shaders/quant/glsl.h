// Prelude of the weight formats for GLSL: a kernel includes this, then one format header.
// It defines the few names that GLSL and C++ spell differently; cpp.h is its counterpart.
//
// A Plane is the 64-bit device address where one field of every block begins, a multiple of 16. Loads
// take the index of an element of their own size, so that an address is one wide multiply-add and no
// byte offset can overflow 32 bits.
#ifndef HEARTH_QUANT_GLSL_H
#define HEARTH_QUANT_GLSL_H

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

#define QUANT_INLINE
#define QUANT_CONST const
#define QUANT_UNROLL [[unroll]]
#define Plane uint64_t

layout(buffer_reference, std430, buffer_reference_align = 16) restrict readonly buffer QuantLoad16 {
  uvec4 at[];
};
layout(buffer_reference, std430, buffer_reference_align = 8) restrict readonly buffer QuantLoad8 {
  uvec2 at[];
};
layout(buffer_reference, std430, buffer_reference_align = 4) restrict readonly buffer QuantLoad4 {
  uint at[];
};
layout(buffer_reference, std430, buffer_reference_align = 2) restrict readonly buffer QuantLoad2 {
  uint16_t at[];
};

uvec4 load_16b(Plane plane, uint index) { return QuantLoad16(plane).at[index]; }
uvec2 load_8b(Plane plane, uint index) { return QuantLoad8(plane).at[index]; }
uint load_u32(Plane plane, uint index) { return QuantLoad4(plane).at[index]; }
uint load_u16(Plane plane, uint index) { return uint(QuantLoad2(plane).at[index]); }

#include "piece.h"

#endif
