// Macros that let GLSL and C++ read the same header. A kernel's arguments are declared once, in
// params/<kernel>.h:
//
//   HEARTH_PARAMS(RmsNorm)
//     address input;  // [rows, width] f32
//     uint width;
//   HEARTH_PARAMS_END
//
// C++ sees a struct hearth::params::RmsNorm; GLSL sees a push constant block named `params`, which ends
// with a ChainPush (runtime/chain.h) that the recorder fills in. Members are 4- and 8-byte scalars, which
// both languages lay out alike, and take at most 112 bytes. HEARTH_STRUCT does the same for structs in
// buffers, HEARTH_CONSTANT for numbers that both sides need.
#ifndef HEARTH_INTEROP_H
#define HEARTH_INTEROP_H

#ifdef __cplusplus

#include <cstdint>

namespace hearth::params {
using uint = std::uint32_t;
using address = std::uint64_t;  // of a buffer on the device
}  // namespace hearth::params

#define HEARTH_PARAMS(name) \
  namespace hearth::params { \
  struct name {
#define HEARTH_PARAMS_END \
  }; \
  }
#define HEARTH_STRUCT(name) HEARTH_PARAMS(name)
#define HEARTH_STRUCT_END HEARTH_PARAMS_END
#define HEARTH_CONSTANT(name, value) \
  namespace hearth::params { \
  inline constexpr uint name = value; \
  }

#else

#define address uint64_t
#define HEARTH_PARAMS(name) layout(push_constant, std430) uniform name {
#define HEARTH_PARAMS_END \
  layout(offset = 112) address chain_counter; \
  uint chain_wait; \
  uint chain_groups; \
  } \
  params;
#define HEARTH_STRUCT(name) struct name {
#define HEARTH_STRUCT_END \
  } \
  ;
#define HEARTH_CONSTANT(name, value) const uint name = value;

#endif
#endif
