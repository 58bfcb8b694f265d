#include "tools/server/shutdown_signals.h"

#include <cerrno>
#include <csignal>

#include <unistd.h>

namespace hearth {
namespace {

int wake_pipe[2] = {-1, -1};
volatile std::sig_atomic_t deferred = 0, asked = 0;
struct sigaction previous_term, previous_int;

void on_signal(int signal) {
  if (deferred == 0) _exit(128 + signal);
  if (asked != 0) _exit(1);
  asked = 1;
  const char byte = 0;
  // If the pipe is full, wait() has been woken already.
  [[maybe_unused]] const ssize_t written = write(wake_pipe[1], &byte, 1);
}

}  // namespace

ShutdownSignals::ShutdownSignals() {
  if (pipe(wake_pipe) != 0) return;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, &previous_term);
  sigaction(SIGINT, &action, &previous_int);
  // Writing to a client that is gone must not end the program.
  signal(SIGPIPE, SIG_IGN);
}

ShutdownSignals::~ShutdownSignals() {
  sigaction(SIGTERM, &previous_term, nullptr);
  sigaction(SIGINT, &previous_int, nullptr);
  for (int& end : wake_pipe) {
    close(end);
    end = -1;
  }
  deferred = 0;
  asked = 0;
}

void ShutdownSignals::defer() { deferred = 1; }

void ShutdownSignals::wait() {
  char byte = 0;
  while (read(wake_pipe[0], &byte, 1) < 0 && errno == EINTR) {
  }
}

}  // namespace hearth
