// Ctrl-C as a flag that the program checks, instead of the end of the program.
#pragma once

namespace hearth {

// While one exists, SIGINT only sets the flag. A second one before the flag was checked ends the
// program as usual.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

// Returns whether Ctrl-C was pressed since the last call, and clears the flag.
bool take_interrupt();

}  // namespace hearth
