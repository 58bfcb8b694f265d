// Makes a chat template safe to run. minja, which runs them, knows no limits: a template may call
// itself for ever, fill the memory, divide by zero or read beyond a string. This scans a template
// before minja sees it, refuses what no chat template needs and minja cannot do safely, and writes
// calls of guard functions into its tags, which whoever runs it must provide:
//   hearth_tick()           before anything else in a tag: counts steps, looks at clock and stack
//   hearth_check(_, value)  returns the value, or refuses one that is too large or too deep
//   hearth_items(_, value)  the same for what a loop goes over
//   hearth_kept(_, value)   a checked deep copy, for members of a namespace
//   hearth_copy(value)      a checked deep copy: what is put into a list cannot hold that list
// Lines stay where they were. A pure function: any thread.
#pragma once

#include <string>
#include <string_view>

#include "runtime/result.h"

namespace hearth {

// Errors name the line.
Result<std::string> guard_template(std::string_view source);

}  // namespace hearth
