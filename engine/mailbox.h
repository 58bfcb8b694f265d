// Where calls from any thread end: new requests, cancellations, tasks, settings, and the controls
// that say when steps may run. The engine thread collects what has arrived between two steps.
//
// This is the only lock that callers and the engine thread share. It is held briefly: requests are
// built before they are posted, and tasks and callbacks run after the lock is released.
//
// Invariants: a request holds a queue place from reserve() until it is first admitted or ends, and
// at most `max_queue` places are taken. Ids are never reused. Mail is collected in the order in
// which it was posted, separately for each kind.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/active_request.h"
#include "engine/scheduling/policy.h"
#include "engine/scheduling/queue_rate.h"
#include "engine/scheduling/scheduler.h"
#include "engine/time_source.h"
#include "runtime/result.h"

namespace hearth {

enum class EngineState { kRunning, kPaused, kDraining, kFailed };

// What callers last asked for. The scheduler follows before its next step.
struct EngineSettings {
  Policy policy;
  SchedulerLimits limits;
};

class Mailbox {
 public:
  using Task = std::function<void()>;

  Mailbox(const EngineSettings& settings, bool start_paused, const TimeSource& time);
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Any thread: requests.

  // Queue places for requests that are still being built. They are given back when this is
  // destroyed, unless post() has used them. REQUIRES: does not outlive the mailbox.
  class QueuePlaces {
   public:
    QueuePlaces(QueuePlaces&& other) noexcept;
    QueuePlaces& operator=(QueuePlaces&&) = delete;
    ~QueuePlaces();

    RequestId first_id() const { return first_id_; }  // the others count up from it

   private:
    friend class Mailbox;
    QueuePlaces(Mailbox& mailbox, size_t count, RequestId first_id)
        : mailbox_(mailbox), count_(count), first_id_(first_id) {}

    Mailbox& mailbox_;
    size_t count_;
    RequestId first_id_;
  };
  // An error says why no request, or not as many as these, can be accepted now. It is kBusy if the
  // queue is full or, by the policy's max_wait_ms, too slow.
  Result<QueuePlaces> reserve(size_t requests);
  // After how many seconds a request that was refused as kBusy may be accepted; at least 1. As long
  // as too few requests have left the queue to tell, as long as it has not moved already.
  double retry_seconds() const;
  // Posts the requests for which `places` were reserved; they are collected together. Fails if the
  // engine has failed or is shutting down.
  Status post(QueuePlaces places, std::vector<std::unique_ptr<ActiveRequest>> requests);
  void cancel(RequestId request);

  // Any thread: tasks and settings.

  void post(Task task);
  // Posts the task and returns when the engine thread has run it. REQUIRES: not called by a task.
  void run(const Task& task);
  // Changes the settings and posts the task that makes the scheduler follow; null posts none. Both
  // happen at once, so that the scheduler ends up with the settings that callers see.
  template <class Change>
  void change_settings(Change change, Task task) {
    {
      const std::lock_guard lock(mutex_);
      change(settings_);
      if (task) tasks_.push_back(std::move(task));
    }
    wake_.notify_all();
  }
  EngineSettings settings() const;

  // Any thread: controls.

  void pause();
  void resume();
  void step_once();
  void set_pace(double steps_per_s);  // 0: as fast as possible
  void drain();                       // returns when every posted request has ended
  void undrain();
  void close();  // the last call: collect() reports it
  EngineState state() const;
  std::string failure() const;

  // The engine thread.

  struct Mail {
    std::vector<std::unique_ptr<ActiveRequest>> requests;
    std::vector<RequestId> cancelled;
    std::vector<Task> tasks;
    bool may_begin_step = false;  // neither paused nor too early for the pace
    bool draining = false;        // no more requests will come until undrain()
    bool closing = false;
  };
  // Replaces the contents of `mail`, whose lists keep their capacity. Uses up one of the single
  // steps. `last_begin` is when the last step began.
  void collect(Mail& mail, EngineClock::time_point last_begin);

  struct Sleep {
    bool has_work = false;  // a step begins as soon as the controls allow it
    EngineClock::time_point last_begin;
    std::optional<EngineClock::time_point> alarm;  // wakes up then at the latest
  };
  // Returns when there is mail, a control was changed, a step may begin, or the alarm is due. May
  // return earlier.
  void wait(const Sleep& sleep);

  void release_place();        // a request was first admitted, or ended before that
  void count_end();            // a request has ended and its reader knows
  void fail(std::string why);  // refuses requests from now on; only the first reason is kept

 private:
  struct Control {
    bool paused = false, draining = false, closing = false;
    uint32_t single_steps = 0;
    double pace = 0;  // steps per second; 0: no limit
  };

  // All of these REQUIRE that mutex_ is held.
  Status check_open() const;
  double longest_wait() const;  // that the policy allows, in seconds; 0: any
  bool may_begin(EngineClock::time_point last_begin) const;
  EngineClock::time_point next_begin(EngineClock::time_point last_begin) const;

  template <class Change>
  void change_control(Change change);

  const TimeSource& time_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;     // the engine thread
  std::condition_variable changed_;  // callers of run() and drain()
  std::vector<std::unique_ptr<ActiveRequest>> requests_;
  std::vector<RequestId> cancelled_;
  std::vector<Task> tasks_;
  Control control_;
  bool control_changed_ = false;  // since the last collect()
  EngineSettings settings_;
  size_t queued_ = 0;  // queue places that are taken
  QueueRate queue_rate_;
  EngineClock::time_point queue_stands_since_;  // the last one left, or the first one came
  size_t unfinished_ = 0;  // requests that were posted and have not ended
  std::string failure_;
  RequestId next_id_ = 1;
};

}  // namespace hearth
