// Names of GGUF tensor types, for messages. formats.h has the ones that Hearth reads.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

// "IQ2_XXS"; "number 77" for an unknown type.
std::string ggml_type_name(std::uint32_t ggml_type);

}  // namespace hearth
