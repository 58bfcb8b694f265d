// Text from outside the program (file names, metadata, what a library says), made safe to print.
// Escape sequences in it could otherwise rewrite the screen of a terminal or forge lines of a log.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

// The text on one line: control characters, bytes that are not UTF-8, and characters that end a
// line or change the direction of writing become \n, \t, \xNN or \uNNNN. All other text stays as it
// is. Do not use it for what a model generates.
std::string printable(std::string_view text);
// The same for several lines: line breaks stay.
std::string printable_lines(std::string_view text);

}  // namespace hearth
