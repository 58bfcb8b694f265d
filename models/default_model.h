// The model that comes with the program: default/README.md is its card.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace hearth {

// A GGUF file, in read-only memory for as long as the program runs.
std::span<const std::byte> default_model();
// The name of that file without ".gguf".
std::string_view default_model_name();

// The same for the tiny model that drafts for it (--speculate draft).
std::span<const std::byte> default_draft_model();
std::string_view default_draft_model_name();

}  // namespace hearth
