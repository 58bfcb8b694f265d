// The message about a file that ends too early, the same for every kind of file.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

// "the file is cut off: 4096 bytes are missing, so its download may be incomplete". With
// `at_least`, more may be missing than could be counted. Empty if the number makes no sense as a
// file's size: then the header is damaged, and another download is not the first thing to try.
std::string cut_off_message(std::uint64_t missing_bytes, bool at_least = false);

}  // namespace hearth
