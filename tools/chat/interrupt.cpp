#include "tools/chat/interrupt.h"

#include <csignal>
#include <utility>

namespace hearth {
namespace {

volatile std::sig_atomic_t interrupted = 0;
struct sigaction previous;

void note_interrupt(int) {
  if (interrupted != 0) {
    // Nobody has looked since the last one: something hangs, and the user means it.
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
  // No SA_RESTART: a read that waits for a line comes back.
  sigaction(SIGINT, &action, &previous);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &previous, nullptr); }

bool take_interrupt() {
  const bool was = interrupted != 0;
  interrupted = 0;
  return was;
}

}  // namespace hearth
