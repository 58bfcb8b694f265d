// The program's standard input, output and error.
#pragma once

#include "runtime/result.h"

namespace hearth {

// Opens /dev/null for each stream that is closed. Otherwise the next file that a library opens
// would get the stream's number, and output would end up in it. Call it first in main.
void open_standard_streams();

// Flushes standard output. Fails if anything printed since the start could not be written.
Status finish_standard_output();

}  // namespace hearth
