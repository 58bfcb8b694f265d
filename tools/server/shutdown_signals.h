// SIGTERM and SIGINT as something to wait for. The first one asks to finish, the second ends the
// program at once.
#pragma once

namespace hearth {

class ShutdownSignals {
 public:
  // Before any thread is started, so that none of them is interrupted.
  ShutdownSignals();
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  // Until the first signal.
  void wait();
};

}  // namespace hearth
