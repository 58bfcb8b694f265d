// Threads that advance constraints while a step runs. post(), start(), wait() and collect() belong
// to the engine thread. Threads are started when the first constraint is posted.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/constraint.h"
#include "engine/ids.h"

namespace hearth {

class MaskWorkers {
 public:
  MaskWorkers() = default;
  // Waits for what is being computed; the rest is dropped.
  ~MaskWorkers();
  MaskWorkers(const MaskWorkers&) = delete;
  MaskWorkers& operator=(const MaskWorkers&) = delete;

  // A constraint that has taken tokens. It is not to be used until its request is collected.
  void post(RequestId request, std::shared_ptr<Constraint> constraint) {
    posted_.push_back({request, std::move(constraint)});
  }
  // Hands what was posted to the threads. `one_here`: a single one is left to the next wait(),
  // which is faster than waking up a thread.
  void start(bool one_here);
  // Whether something was started that has not been collected.
  bool busy() const { return uncollected_ > 0; }
  // Returns when all of it is done, or after `longest`. With `help`, advances constraints on this
  // thread as well; then it may take as long as one of them takes.
  void wait(std::chrono::nanoseconds longest, bool help);
  // Overwrites `done` with the requests whose constraints have been advanced.
  void collect(std::vector<RequestId>& done);

 private:
  struct Job {
    RequestId request = 0;
    std::shared_ptr<Constraint> constraint;
  };
  void work();
  // Takes the oldest job, runs it without the lock, and lists it as done. False if there is none.
  bool run_one(std::unique_lock<std::mutex>& lock);

  std::vector<Job> posted_;
  size_t uncollected_ = 0;
  std::atomic<size_t> done_count_{0};  // the size of done_

  std::mutex mutex_;  // for everything below but the threads
  std::condition_variable work_ready_, done_ready_;
  std::deque<Job> queue_;
  std::vector<RequestId> done_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hearth
