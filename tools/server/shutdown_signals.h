// SIGTERM and SIGINT as something to wait for. Once there is something to finish, the first one
// asks to do so, and the second ends the program at once.
#pragma once

namespace hearth {

class ShutdownSignals {
 public:
  // Before any thread is started, so that none of them is interrupted.
  ShutdownSignals();
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  // From now on; until then the first one ends the program at once, too.
  void defer();
  // Until the first signal.
  void wait();
};

}  // namespace hearth
