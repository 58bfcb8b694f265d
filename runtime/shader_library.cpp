#include "runtime/shader_library.h"

#include <algorithm>

#include <fmt/format.h>

namespace hearth {

// Written by shaders/CMakeLists.txt.
extern const ShaderBinary kEmbeddedShaders[];
extern const size_t kEmbeddedShaderCount;

std::span<const ShaderBinary> shader_library() { return {kEmbeddedShaders, kEmbeddedShaderCount}; }

Result<ShaderBinary> find_shader(std::string_view name) {
  const auto all = shader_library();
  const auto found = std::lower_bound(
      all.begin(), all.end(), name,
      [](const ShaderBinary& shader, std::string_view wanted) { return shader.name < wanted; });
  if (found == all.end() || found->name != name)
    return Error{ErrorKind::kNotFound,
                 fmt::format("this build has no kernel '{}' (its shader compiler may lack a "
                             "feature the kernel needs; the build's output says which)",
                             name)};
  return *found;
}

}  // namespace hearth
