// One thing that is done on a thread of its own while frames go on. Of the window's thread alone.
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
  // Waits for what is under way.
  ~BackgroundTask() {
    if (thread_.joinable()) thread_.join();
  }
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  // Under way, or done and not taken yet.
  bool busy() const { return thread_.joinable(); }
  // REQUIRES: !busy(). `work` shares nothing with this thread.
  void start(std::function<T()> work) {
    done_ = false;
    thread_ = std::thread([this, work = std::move(work)] {
      result_.emplace(work());
      done_ = true;
    });
  }
  // What has come of it, once; nothing before. Never waits.
  std::optional<T> take() {
    if (!thread_.joinable() || !done_) return std::nullopt;
    thread_.join();
    return std::exchange(result_, std::nullopt);
  }

 private:
  std::thread thread_;
  std::atomic<bool> done_{false};
  std::optional<T> result_;  // of the thread until done_
};

}  // namespace hearth
