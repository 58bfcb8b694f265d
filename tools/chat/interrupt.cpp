#include "tools/chat/interrupt.h"

#include <csignal>
#include <utility>

namespace hearth {
namespace {

volatile std::sig_atomic_t interrupted = 0;
struct sigaction previous;

void note_interrupt(int) {
  if (interrupted != 0) {
    // The flag has not been checked since the last one: the program hangs, and the user wants out.
    sigaction(SIGINT, &previous, nullptr);
    raise(SIGINT);
  }
  interrupted = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  sigemptyset(&action.sa_mask);
  // Without SA_RESTART, so that a read that waits for a line returns.
  sigaction(SIGINT, &action, &previous);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &previous, nullptr); }

bool take_interrupt() {
  const bool was = interrupted != 0;
  interrupted = 0;
  return was;
}

}  // namespace hearth
