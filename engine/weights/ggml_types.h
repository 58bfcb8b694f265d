// Names of the tensor types that GGUF files have numbers for, for messages: those Hearth reads are
// in formats.h.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

// "IQ2_XXS", or "number 77" where that is no type anybody knows.
std::string ggml_type_name(std::uint32_t ggml_type);

}  // namespace hearth
