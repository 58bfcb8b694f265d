// Standard input, output and error of the program.
#pragma once

#include "runtime/result.h"

namespace hearth {

// Opens those that are closed, on nothing: otherwise the next file that a library opens gets their
// number, and what is printed goes there. First thing of main.
void open_standard_streams();

// Whether all that was printed has gone out.
Status finish_standard_output();

}  // namespace hearth
