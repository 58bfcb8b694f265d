// Threads that advance constraints while a step runs. post(), start(), wait() and collect() belong
// to the engine thread, which never computes masks itself: a grammar made for it can make one take
// a second. Constraints that were slow last time have a thread of their own, so that the others do
// not wait behind them. Threads are started when the first constraint is.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
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
    const Speed speed = constraint->slow() ? kSlow : kFast;
    posted_.push_back({request, std::move(constraint), speed});
  }
  // Hands what was posted to the threads.
  void start();
  // Whether something was started that has not been collected.
  bool busy() const { return uncollected_[kFast] + uncollected_[kSlow] > 0; }
  // Returns when all but the slow ones are done, or after `longest`. If there are only slow ones,
  // returns when one of them is done, or at once if the caller is not `idle`.
  void wait(std::chrono::nanoseconds longest, bool idle);
  // Overwrites `done` with the requests whose constraints have been advanced.
  void collect(std::vector<RequestId>& done);

 private:
  enum Speed : size_t { kFast, kSlow, kSpeeds };
  struct Job {
    RequestId request = 0;
    std::shared_ptr<Constraint> constraint;
    Speed speed = kFast;
  };
  void work(Speed speed);

  std::vector<Job> posted_;
  std::array<size_t, kSpeeds> uncollected_ = {};

  std::mutex mutex_;  // for everything below but the threads
  std::array<std::condition_variable, kSpeeds> work_ready_;
  std::condition_variable done_ready_;
  std::array<std::deque<Job>, kSpeeds> queues_;
  std::vector<RequestId> done_;
  // How many of done_ there are. Changed under the lock, and read without it.
  std::array<std::atomic<size_t>, kSpeeds> done_count_ = {};
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hearth
