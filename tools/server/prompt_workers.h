// Threads that turn requests into prompts. A chat template or a long text can keep a processor busy
// for seconds, so this work does not run on a connection's own thread: that thread waits here,
// keeps an eye on its client, and can give up at any time. The fixed number of threads also bounds
// the memory that templates can take together.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hearth {

class PromptWorkers {
 public:
  // Must end soon once `cancelled` is true.
  using Task = std::function<void(const std::atomic<bool>& cancelled)>;
  // Whether nobody needs the result any more; asked every few milliseconds by the thread that
  // waits. Must not throw.
  using Gone = std::function<bool()>;

  explicit PromptWorkers(unsigned threads);
  // REQUIRES: no run() is in progress.
  ~PromptWorkers();
  PromptWorkers(const PromptWorkers&) = delete;
  PromptWorkers& operator=(const PromptWorkers&) = delete;

  // Runs the task on one of the threads, in the order of arrival, and waits for it. Once `gone` is
  // true, a task that has not started never does, and one that runs is cancelled and waited for.
  // True: the task ran and was not cancelled. Throws what the task throws. Any thread may call it.
  bool run(const Task& task, const Gone& gone);

 private:
  struct Job;
  void work();

  std::mutex mutex_;
  std::condition_variable work_ready_;
  std::deque<Job*> queue_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hearth
