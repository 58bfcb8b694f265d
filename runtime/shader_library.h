// The kernels built into the program, as SPIR-V. A kernel with compile-time axes is listed once per
// combination, with the values appended to its name: "matvec_team.f16".
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/result.h"

namespace hearth {

struct ShaderBinary {
  std::string_view name;
  std::span<const uint32_t> code;
};

// Sorted by name.
std::span<const ShaderBinary> shader_library();

// Makes find_shader() find these, too: kernels that only tests need. Call it once, before any other
// thread looks for a kernel.
void add_shaders(std::span<const ShaderBinary> sorted);

// The error names the kernel and says why it may be missing: the shader compiler of this build
// lacked a feature that the kernel needs.
Result<ShaderBinary> find_shader(std::string_view name);

}  // namespace hearth
