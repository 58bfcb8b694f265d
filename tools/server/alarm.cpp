#include "tools/server/alarm.h"

#include <utility>

namespace hearth {

Alarm::Alarm(std::chrono::steady_clock::duration time, std::function<void()> act)
    : thread_([this, time, act = std::move(act)] {
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, time, [this] { return off_; })) return;
        lock.unlock();
        act();
      }) {}

Alarm::~Alarm() {
  {
    const std::lock_guard lock(mutex_);
    off_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace hearth
