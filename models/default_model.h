// The model that comes with the program: default/README.md is its card.
#pragma once

#include <cstddef>
#include <span>

namespace hearth {

// A GGUF file, in read-only memory for as long as the program runs.
std::span<const std::byte> default_model();

}  // namespace hearth
