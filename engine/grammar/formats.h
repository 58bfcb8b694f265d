// The values of `format` that are enforced, as regular expressions for the whole string.
#pragma once

#include <string_view>

namespace hearth::grammar {

// Null for formats that are annotations only.
const char* format_pattern(std::string_view name);

// Whether the pattern matches exactly what the format allows; others are a little too strict.
bool format_is_exact(std::string_view name);

}  // namespace hearth::grammar
