// A parallel loop for loading: reading a mapped model file keeps one core busy with page faults, so
// several threads fill a chunk of staging memory together. One caller at a time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hearth {

class WorkerPool {
 public:
  // `threads` includes the caller's; 0: as many as speed up copying memory on this machine.
  explicit WorkerPool(size_t threads = 0);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  size_t threads() const { return workers_.size() + 1; }
  // Runs work(0) ... work(count - 1), each once, and returns when all are done. `work` must not
  // throw.
  void run(size_t count, const std::function<void(size_t)>& work);

 private:
  void serve();
  // Runs items until none is left. REQUIRES: `lock` is held.
  void take_items(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable begins_, ends_;
  const std::function<void(size_t)>* work_ = nullptr;
  size_t next_ = 0, count_ = 0, unfinished_ = 0;
  bool closing_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace hearth
