// Waits for SIGTERM or SIGINT. Before defer() the first signal ends the program at once; after it,
// the first one wakes wait(), so that open requests can finish, and the second ends the
// program.
#pragma once

namespace hearth {

class ShutdownSignals {
 public:
  // REQUIRES: no other thread runs yet, so that none of them is interrupted.
  ShutdownSignals();
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  // There is something to finish from now on.
  void defer();
  // Blocks until the first signal.
  void wait();
};

}  // namespace hearth
