// What CLI11 lets through as a number and is none.
#pragma once

#include <CLI/CLI.hpp>

#include "runtime/result.h"

namespace hearth {

// CLI11 takes an empty text for 0 and 010 for 8, wraps what is below 0 or too large for 64 bits,
// and finds NaN in any range. Fails for the first option of the parsed command that was given such
// a number.
Status check_numbers(const CLI::App& command);

}  // namespace hearth
