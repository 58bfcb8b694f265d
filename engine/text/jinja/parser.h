// Template source to syntax. Linear in the source, recursion bounded.
#pragma once

#include <memory>
#include <string_view>

#include "engine/text/jinja/syntax.h"

namespace hearth::jinja {

// Throws Failure with a line.
std::unique_ptr<const Syntax> parse_template(std::string_view source);

}  // namespace hearth::jinja
