// The kernels built into the program, as SPIR-V. A kernel compiled along several axes is listed
// once for each combination, with the values behind its name: "matvec_team.f16".
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

// An error names the kernel and says why it may be missing: this build's shader compiler did not
// know a feature the kernel needs.
Result<ShaderBinary> find_shader(std::string_view name);

}  // namespace hearth
