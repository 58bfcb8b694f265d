// Macros that let GLSL and C++ read the same header. A kernel's arguments are declared once, in
// params/<kernel>.h:
//
//   HEARTH_PARAMS(GatherRows)
//     reads_address x;   // [source_rows, width] f32
//     writes_address y;  // [rows, width] f32
//     uint width;
//   HEARTH_PARAMS_END
//
// GLSL sees a push constant block named `params`, in which buffers are addresses and which ends with a
// ChainPush (runtime/chain.h) that the recorder fills in. C++ sees a struct hearth::params::GatherRows, in
// which buffers are slices; runtime/kernel_arguments.h makes push constants and accesses of it. Of buffers the
// kernel says what it does with them: updates_address is for those that it both reads and writes. Other members
// are 4- and 8-byte numbers; all together take at most 112 bytes. Buffers that a kernel finds by itself, by
// their distance from another one or by addresses in memory, are declared with HEARTH_FINDS_TO_READ(name) or
// HEARTH_FINDS_TO_WRITE(name): GLSL does not see them. HEARTH_STRUCT declares structs in buffers,
// HEARTH_CONSTANT numbers that both sides need.
//
// A kernel's specialization constants are declared in the same file, with their ids and defaults:
//
//   HEARTH_CONSTANTS(RmsNorm)
//     HEARTH_WORKGROUP_SIZE         // id 0, in every kernel: gl_WorkGroupSize.x
//     HEARTH_UINT(1, kResiduals, 0)
//   HEARTH_CONSTANTS_END
//
// GLSL sees constants of these names, C++ a struct hearth::params::RmsNormConstants with members of the same
// names, which converts to KernelConstants (runtime/kernel_constants.h). Ids count up from 0.
// HEARTH_UNUSED keeps an id that the kernel does not read. Constants after HEARTH_OPTIONAL_FROM(id) are not
// passed to the kernel unless something sets them.
#ifndef HEARTH_INTEROP_H
#define HEARTH_INTEROP_H

#ifdef __cplusplus

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/kernel_arguments.h"

namespace hearth::params {
using uint = std::uint32_t;
using address = std::uint64_t;  // of a buffer on the device, in a struct
using reads_address = BufferArgument<AccessMode::kRead>;
using writes_address = BufferArgument<AccessMode::kWrite>;
using updates_address = BufferArgument<AccessMode::kReadWrite>;

// How C++ finds a declared constant by its id.
template <uint id>
struct ConstantId {};
struct DeclaredConstant {
  const char* name;
  std::size_t offset;  // in the struct
  bool is_float;
};
}  // namespace hearth::params

#define HEARTH_PARAMS(name) \
  namespace hearth::params { \
  struct name {
#define HEARTH_PARAMS_END \
  }; \
  }
#define HEARTH_FINDS_TO_READ(name) FoundBuffer<AccessMode::kRead> name;
#define HEARTH_FINDS_TO_WRITE(name) FoundBuffer<AccessMode::kWrite> name;
#define HEARTH_STRUCT(name) HEARTH_PARAMS(name)
#define HEARTH_STRUCT_END HEARTH_PARAMS_END
#define HEARTH_CONSTANT(name, value) \
  namespace hearth::params { \
  inline constexpr uint name = value; \
  }

#define HEARTH_CONSTANTS(name) \
  namespace hearth::params { \
  struct name##Constants {
#define HEARTH_CONSTANTS_END HEARTH_PARAMS_END
#define HEARTH_TYPED_CONSTANT(type, id, name, value) \
  type name = value; \
  template <class Self> \
  static constexpr DeclaredConstant declared(ConstantId<id>) { \
    return {#name, offsetof(Self, name), std::is_same_v<type, float>}; \
  }
#define HEARTH_WORKGROUP_SIZE HEARTH_UINT(0, kWorkgroupSize, 1)
#define HEARTH_UINT(id, name, value) HEARTH_TYPED_CONSTANT(uint, id, name, value)
#define HEARTH_FLOAT(id, name, value) HEARTH_TYPED_CONSTANT(float, id, name, value)
#define HEARTH_UNUSED(id, name, value) HEARTH_UINT(id, name, value)
#define HEARTH_OPTIONAL_FROM(id) static constexpr uint kFirstOptional = id;

#else

#define address uint64_t
#define reads_address address
#define writes_address address
#define updates_address address
#define HEARTH_PARAMS(name) layout(push_constant, std430) uniform name {
#define HEARTH_PARAMS_END \
  layout(offset = 112) address chain_counter; \
  uint chain_wait; \
  uint chain_groups; \
  } \
  params;
#define HEARTH_FINDS_TO_READ(name)
#define HEARTH_FINDS_TO_WRITE(name)
#define HEARTH_STRUCT(name) struct name {
#define HEARTH_STRUCT_END \
  } \
  ;
#define HEARTH_CONSTANT(name, value) const uint name = value;

#define HEARTH_CONSTANTS(name)
#define HEARTH_CONSTANTS_END
#define HEARTH_WORKGROUP_SIZE layout(local_size_x_id = 0) in;
#define HEARTH_UINT(id, name, value) layout(constant_id = id) const uint name = value;
#define HEARTH_FLOAT(id, name, value) layout(constant_id = id) const float name = value;
#define HEARTH_UNUSED(id, name, value)
#define HEARTH_OPTIONAL_FROM(id)

#endif
#endif
