// Text from a file, made safe for a one-line message.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

// Returns the text in single quotes, truncated after 80 bytes; bytes that are not printable ASCII
// are written as \xNN.
std::string in_quotes(std::string_view text);

}  // namespace hearth
