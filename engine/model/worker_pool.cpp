#include "engine/model/worker_pool.h"

#include <algorithm>

namespace hearth {

WorkerPool::WorkerPool(size_t threads) {
  // With more than eight threads, memory is the limit, not cores.
  constexpr size_t kEnough = 8;
  if (threads == 0) threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kEnough);
  for (size_t i = 1; i < threads; ++i) workers_.emplace_back([this] { serve(); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  begins_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::run(size_t count, const std::function<void(size_t)>& work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  next_ = 0;
  count_ = unfinished_ = count;
  begins_.notify_all();
  take_items(lock);
  ends_.wait(lock, [this] { return unfinished_ == 0; });
  count_ = 0;
}

void WorkerPool::take_items(std::unique_lock<std::mutex>& lock) {
  while (next_ < count_) {
    const size_t item = next_++;
    const std::function<void(size_t)>& work = *work_;
    lock.unlock();
    work(item);
    lock.lock();
    if (--unfinished_ == 0) ends_.notify_all();
  }
}

void WorkerPool::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    begins_.wait(lock, [this] { return closing_ || next_ < count_; });
    if (closing_) return;
    take_items(lock);
  }
}

}  // namespace hearth
