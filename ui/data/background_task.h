// One task on a thread of its own, so that frames go on meanwhile. Call only from the window's
// thread.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

namespace hearth {

template <class T>
class BackgroundTask {
 public:
  BackgroundTask() = default;
  // Waits for a running task.
  ~BackgroundTask() {
    if (thread_.joinable()) thread_.join();
  }
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  // Running, or done with a result that has not been taken yet.
  bool busy() const { return thread_.joinable(); }
  // REQUIRES: !busy(). `work` shares no data with the calling thread.
  void start(std::function<T()> work) {
    done_ = false;
    thread_ = std::thread([this, work = std::move(work)] {
      result_.emplace(work());
      done_ = true;
    });
  }
  // Returns the result once, and nothing until it is there. Never waits.
  std::optional<T> take() {
    if (!thread_.joinable() || !done_) return std::nullopt;
    thread_.join();
    return std::exchange(result_, std::nullopt);
  }

 private:
  std::thread thread_;
  std::atomic<bool> done_{false};
  std::optional<T> result_;  // written by thread_ before done_ is set
};

}  // namespace hearth
