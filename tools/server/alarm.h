// Calls a function after a while, unless it is destroyed before.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace hearth {

class Alarm {
 public:
  // `act` runs on a thread of its own.
  Alarm(std::chrono::steady_clock::duration time, std::function<void()> act);
  // If `act` runs, waits for it.
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool off_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace hearth
