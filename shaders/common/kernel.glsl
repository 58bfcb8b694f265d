// Every kernel includes this right after its #version and #extension GL_GOOGLE_include_directive: the
// extensions that Hearth requires of a device, typed views of memory by address, and rounding.
//
//   F32x4(params.input).at[i]      the i-th vec4 at that address
//
// An address must be a multiple of the view's element size. Views are `nonprivate`: another kernel that
// runs at the same time may read what is written through them once it has waited (chain.glsl).
#ifndef HEARTH_KERNEL_GLSL
#define HEARTH_KERNEL_GLSL
#pragma use_vulkan_memory_model

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require

#include "common/rounding.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) nonprivate buffer F32 { float at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) nonprivate buffer F32x4 { vec4 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) nonprivate buffer U32 { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) nonprivate buffer U32x4 { uvec4 at[]; };

// Fresh views bypass the per-core caches. A kernel that reads the output of its chain's earlier kernels
// only through these need not invalidate those caches: chain_wait_fresh().
layout(buffer_reference, std430, buffer_reference_align = 4) queuefamilycoherent readonly buffer FreshF32 {
  float at[];
};
layout(buffer_reference, std430, buffer_reference_align = 16) queuefamilycoherent readonly buffer FreshF32x4 {
  vec4 at[];
};
layout(buffer_reference, std430, buffer_reference_align = 16) queuefamilycoherent readonly buffer FreshU32x4 {
  uvec4 at[];
};

#endif
