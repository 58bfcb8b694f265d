// Text from a file, fit for a message of one line.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

// In single quotes, cut off after 80 bytes; what is no printable ASCII is written as \xNN.
std::string in_quotes(std::string_view text);

}  // namespace hearth
