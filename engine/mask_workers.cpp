#include "engine/mask_workers.h"

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

// Masks of one grammar share its states under a lock, so that many threads would only wait.
unsigned most_mask_threads() { return std::clamp(std::thread::hardware_concurrency() / 4, 1u, 4u); }

// Most masks take less time than it takes to be woken up.
constexpr auto kMaskSpin = std::chrono::microseconds(50);

}  // namespace

MaskWorkers::~MaskWorkers() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    queue_.clear();
  }
  work_ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void MaskWorkers::start(bool one_here) {
  if (posted_.empty()) return;
  const size_t count = posted_.size();
  while (threads_.size() < std::min<size_t>(count, most_mask_threads()))
    threads_.emplace_back([this] { work(); });
  {
    const std::lock_guard lock(mutex_);
    for (Job& job : posted_) queue_.push_back(std::move(job));
  }
  posted_.clear();
  uncollected_ += count;
  if (count > 1)
    work_ready_.notify_all();
  else if (!one_here)
    work_ready_.notify_one();
}

void MaskWorkers::wait(std::chrono::nanoseconds longest, bool help) {
  using Clock = std::chrono::steady_clock;
  const auto all_done = [this] {
    return done_count_.load(std::memory_order_acquire) >= uncollected_;
  };
  const Clock::time_point begin = Clock::now();
  if (help) {
    std::unique_lock lock(mutex_);
    while (run_one(lock)) {
    }
  }
  while (!all_done() &&
         Clock::now() - begin < std::min<std::chrono::nanoseconds>(longest, kMaskSpin))
    std::this_thread::yield();
  if (all_done()) return;
  std::unique_lock lock(mutex_);
  if (!queue_.empty()) work_ready_.notify_all();
  done_ready_.wait_until(lock, begin + longest, all_done);
}

void MaskWorkers::collect(std::vector<RequestId>& done) {
  done.clear();
  const std::lock_guard lock(mutex_);
  std::swap(done, done_);
  done_count_.store(0, std::memory_order_release);
  uncollected_ -= done.size();
}

bool MaskWorkers::run_one(std::unique_lock<std::mutex>& lock) {
  if (queue_.empty()) return false;
  const Job job = std::move(queue_.front());
  queue_.pop_front();
  lock.unlock();
  job.constraint->advance();
  lock.lock();
  done_.push_back(job.request);
  done_count_.store(done_.size(), std::memory_order_release);
  return true;
}

void MaskWorkers::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_ready_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (closing_) return;
    while (run_one(lock)) {
      if (closing_) return;
    }
    done_ready_.notify_one();
  }
}

}  // namespace hearth
