// How wide the terminal is.
#pragma once

#include <cstdint>

namespace hearth {

// Of the terminal that a file descriptor is open on, now: it may be resized. 80 if it does not say;
// 0 if the descriptor is no terminal.
uint32_t terminal_columns(int file_descriptor);

}  // namespace hearth
