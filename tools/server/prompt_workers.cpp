#include "tools/server/prompt_workers.h"

#include <algorithm>
#include <chrono>
#include <exception>

namespace hearth {
namespace {

constexpr auto kGoneGlance = std::chrono::milliseconds(10);

}  // namespace

// Lives on the stack of the thread that waits for it.
struct PromptWorkers::Job {
  const Task& task;
  std::atomic<bool> cancelled{false};
  // Below: protected by the workers' mutex.
  bool done = false;
  std::exception_ptr failure = nullptr;
  std::condition_variable ended = {};
};

PromptWorkers::PromptWorkers(unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

PromptWorkers::~PromptWorkers() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  work_ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool PromptWorkers::run(const Task& task, const Gone& gone) {
  Job job{.task = task};
  std::unique_lock lock(mutex_);
  queue_.push_back(&job);
  work_ready_.notify_one();
  while (!job.ended.wait_for(lock, kGoneGlance, [&] { return job.done; })) {
    if (job.cancelled) continue;
    lock.unlock();
    const bool is_gone = gone();
    lock.lock();
    if (!is_gone || job.done) continue;
    job.cancelled = true;
    if (const auto waiting = std::ranges::find(queue_, &job); waiting != queue_.end()) {
      queue_.erase(waiting);
      return false;
    }
  }
  if (job.failure) std::rethrow_exception(job.failure);
  return !job.cancelled;
}

void PromptWorkers::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_ready_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Job& job = *queue_.front();
    queue_.pop_front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      job.task(job.cancelled);
    } catch (...) {  // for the thread that waits; this one continues
      failure = std::current_exception();
    }
    lock.lock();
    job.failure = failure;
    job.done = true;
    job.ended.notify_one();  // under the lock: the job is gone once its thread has it
  }
}

}  // namespace hearth
