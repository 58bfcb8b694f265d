// Ctrl-C as something to look for instead of the end of the program.
#pragma once

namespace hearth {

// While one lives, SIGINT is only noted. A second Ctrl-C before anybody looked ends the program as
// usual.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

// Whether Ctrl-C was pressed since the last call.
bool take_interrupt();

}  // namespace hearth
