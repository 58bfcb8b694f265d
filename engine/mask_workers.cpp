#include "engine/mask_workers.h"

#include <algorithm>

namespace hearth {
namespace {

// Masks of one grammar share its states under a lock, so that many threads would only wait.
unsigned fast_mask_threads() { return std::clamp(std::thread::hardware_concurrency() / 4, 2u, 4u); }

// Most masks take less time than it takes to be woken up.
constexpr std::chrono::nanoseconds kMaskSpin = std::chrono::microseconds(50);

}  // namespace

MaskWorkers::~MaskWorkers() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  for (std::condition_variable& ready : work_ready_) ready.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void MaskWorkers::start() {
  if (posted_.empty()) return;
  if (threads_.empty()) {
    threads_.emplace_back([this] { work(kSlow); });
    for (unsigned i = 0; i < fast_mask_threads(); ++i)
      threads_.emplace_back([this] { work(kFast); });
  }
  std::array<size_t, kSpeeds> added = {};
  {
    const std::lock_guard lock(mutex_);
    for (Job& job : posted_) {
      ++added[job.speed];
      queues_[job.speed].push_back(std::move(job));
    }
  }
  posted_.clear();
  for (size_t speed = 0; speed < kSpeeds; ++speed) {
    uncollected_[speed] += added[speed];
    if (added[speed] == 1)
      work_ready_[speed].notify_one();
    else if (added[speed] > 1)
      work_ready_[speed].notify_all();
  }
}

void MaskWorkers::wait(std::chrono::nanoseconds longest, bool idle) {
  using Clock = std::chrono::steady_clock;
  const auto enough = [&] {
    const auto done = [this](Speed speed) {
      return done_count_[speed].load(std::memory_order_acquire);
    };
    if (uncollected_[kFast] > 0) return done(kFast) >= uncollected_[kFast];
    return !idle || done(kSlow) > 0;
  };
  const Clock::time_point begin = Clock::now();
  while (!enough() && Clock::now() - begin < std::min(longest, kMaskSpin))
    std::this_thread::yield();
  if (enough()) return;
  std::unique_lock lock(mutex_);
  done_ready_.wait_until(lock, begin + longest, enough);
}

void MaskWorkers::collect(std::vector<RequestId>& done) {
  done.clear();
  const std::lock_guard lock(mutex_);
  std::swap(done, done_);
  for (size_t speed = 0; speed < kSpeeds; ++speed)
    uncollected_[speed] -= done_count_[speed].exchange(0, std::memory_order_acq_rel);
}

void MaskWorkers::work(Speed speed) {
  std::deque<Job>& queue = queues_[speed];
  std::unique_lock lock(mutex_);
  for (;;) {
    work_ready_[speed].wait(lock, [&] { return closing_ || !queue.empty(); });
    if (closing_) return;
    const Job job = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    job.constraint->advance();
    lock.lock();
    done_.push_back(job.request);
    done_count_[speed].fetch_add(1, std::memory_order_acq_rel);
    if (queue.empty()) done_ready_.notify_one();
  }
}

}  // namespace hearth
