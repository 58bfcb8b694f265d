// The engine: takes requests from any thread, runs them together on its own thread, and delivers
// tokens as they are generated. README.md of this folder has the picture.
//
// All public functions are thread-safe. A request that can never run is refused by submit(). An
// accepted request always ends, and its stream says how. A failing request does not affect the
// others; only a lost device ends them all, each with an error, and every later submit() fails.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/active_request.h"
#include "engine/generation.h"
#include "engine/metrics.h"
#include "engine/model/step_executor.h"
#include "engine/scheduling/scheduler.h"
#include "engine/step_record.h"
#include "engine/time_source.h"
#include "engine/token_stream.h"
#include "runtime/result.h"

namespace hearth {

class Tokenizer;

struct EngineOptions {
  SchedulerLimits limits;
  Policy policy;
  uint32_t vocabulary = 0;       // prompt ids must be below it; 0: not known
  size_t recorded_steps = 4096;  // how many StepRing keeps
  bool start_paused = false;
  const TimeSource* time = &real_time();  // the clock of everything; it outlives the engine
  // Checks the scheduler's invariants after every step; a violation aborts with a message.
#ifdef NDEBUG
  bool check_integrity = false;
#else
  bool check_integrity = true;
#endif
};

enum class EngineState { kRunning, kPaused, kDraining, kFailed };

class Engine {
 public:
  // From now on only the engine thread uses `executor`. `tokenizer` may be null. Both must outlive
  // the engine.
  Engine(StepExecutor& executor, const Tokenizer* tokenizer, const EngineOptions& options);
  // Cancels all requests and joins the engine thread.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Queues a request, or says why it is refused. Releasing the last pointer to the stream cancels
  // the request, because its output could no longer be read.
  Result<std::shared_ptr<TokenStream>> submit(GenerationRequest request);
  // Queues several requests that are admitted in the same step. Accepts all of them or none.
  Result<std::vector<std::shared_ptr<TokenStream>>> submit(std::vector<GenerationRequest> requests);
  // Queues `n` completions of one prompt, which share its KV blocks. Their seeds count up from the
  // request's.
  Result<std::vector<std::shared_ptr<TokenStream>>> submit_n(const GenerationRequest& request,
                                                             uint32_t n);
  // Ends the request within one step. Unknown ids are ignored.
  void cancel(RequestId request);
  // Takes effect at the next step, for a waiting or running request. Unknown ids are ignored.
  void set_priority(RequestId request, int32_t priority);

  void set_policy(const Policy& policy);
  Policy policy() const;
  // Checks whether a prompt can ever run, so that callers need not copy it first. If it cannot,
  // `requests` are counted as refused.
  AddResult check_prompt(std::span<const TokenId> prompt, size_t requests);

  // Changes limits while running, up to those the engine was created with (initial_limits()).
  // `pool_blocks` 0 leaves the pool as it is. A smaller pool withholds blocks and preempts requests
  // if necessary, but never drops below what the largest present request needs. The result is in
  // limits() before the next step.
  void set_limits(uint32_t max_sequences, uint32_t max_step_tokens, uint32_t pool_blocks = 0);
  SchedulerLimits limits() const;
  const SchedulerLimits& initial_limits() const { return options_.limits; }
  uint32_t vocabulary() const { return options_.vocabulary; }  // 0: not known

  void pause();
  void resume();
  void step_once();                   // while paused; does nothing if there is no work
  void set_pace(double steps_per_s);  // slow motion; 0: as fast as possible

  // Refuses new requests, resumes if paused, and returns when all accepted requests have ended.
  void drain();
  // Accepts requests again.
  void undrain();

  EngineState state() const;
  std::string failure() const;  // why, in state kFailed
  // Fills in the counts that metrics() also has as gauges: requests, and blocks used, cached and
  // free. They are current between steps, too.
  void read_gauges(SchedulerCounts& counts) const;
  const Metrics& metrics() const { return metrics_; }
  const StepRing& records() const { return records_; }
  double seconds() const;  // since the engine was created; the clock of StepRecords

  // Runs `look` on the engine thread between two steps and returns when it is done. For the
  // dashboard's view of blocks and sequences.
  void inspect(const std::function<void(const Scheduler&)>& look);

 private:
  struct Control {
    bool paused = false, draining = false, closing = false;
    uint32_t single_steps = 0;
    double pace = 0;
  };
  struct StepInFlight {
    StepTicket ticket;
    std::vector<RequestId> sampled;  // the request of each logit row
    StepRecord record;
  };

  // Queue places that are reserved but not used yet; the destructor gives them back.
  struct QueuePlaces {
    Engine& engine;
    size_t count = 0;
    ~QueuePlaces();
  };

  EngineClock::time_point clock_now() const { return options_.time->now(); }
  // Whether `requests` more fit into the queue now. REQUIRES: mutex_ is held.
  Status check_room(size_t requests) const;
  Result<std::unique_ptr<ActiveRequest>> make_request(GenerationRequest request, RequestId id,
                                                      const SchedulerLimits& limits) const;
  template <class Change>
  void change_control(Change change);
  // Runs `task` on the engine thread between two steps; returns when it is done.
  void run_task(std::function<void()> task);

  // The engine thread. Messages from callers:
  void loop();
  void take_messages();
  void handle_messages();
  void take_and_handle_messages();
  bool may_begin_step();
  EngineClock::time_point next_begin() const;
  void wait_for_work();
  void accept_new(std::unique_ptr<ActiveRequest> request);
  void end_expired();
  // Steps:
  bool begin_step();
  Status move_blocks(const BatchPlan& plan);
  Status prepare_slots(const BatchPlan& plan, EngineClock::time_point now);
  void make_batch(const BatchPlan& plan, StepInFlight& step);
  void describe_plan(const BatchPlan& plan, StepRecord& record) const;
  void end_step();
  void publish(StepRecord& record);
  void show_counts(const SchedulerCounts& counts);
  void check_integrity() const;
  // Ends of requests:
  void end_request(RequestId id, FinishReason reason, std::string message = {});
  void count_finish(const ActiveRequest& request, FinishReason reason);
  void fail_step(const BatchPlan& plan, bool prepared, const Error& error);
  void fail(const Error& error);
  void end_everything(FinishReason reason, const std::string& message);

  StepExecutor& executor_;
  const Tokenizer* tokenizer_;
  const EngineOptions options_;
  const EngineClock::time_point created_at_ = clock_now();
  Metrics metrics_;
  StepRing records_;

  // Between callers and the engine thread.
  mutable std::mutex mutex_;
  std::condition_variable wake_, changed_;
  std::vector<std::unique_ptr<ActiveRequest>> new_requests_;
  std::vector<RequestId> cancelled_;
  std::vector<std::function<void()>> tasks_;  // posted to the engine thread
  Control control_;
  Policy policy_;
  SchedulerLimits limits_;
  size_t queued_ = 0;      // requests that hold a queue place and have never been admitted
  size_t unfinished_ = 0;  // accepted requests that have not ended
  std::string failure_;
  RequestId next_id_ = 1;

  // Used by the engine thread only.
  Scheduler scheduler_;
  std::unordered_map<RequestId, std::unique_ptr<ActiveRequest>> active_;
  std::vector<std::unique_ptr<ActiveRequest>> incoming_;
  std::vector<RequestId> ending_;
  std::vector<std::function<void()>> running_tasks_;
  StepBatch batch_;
  StepInFlight steps_[StepExecutor::kStepsInFlight];
  size_t first_step_ = 0, steps_in_flight_ = 0;
  EngineClock::time_point last_begin_ = {}, last_end_ = {};
  std::vector<RequestId> finished_;                // since the last record, for whatever reason
  std::vector<RequestId> cancelled_since_record_;  // those of finished_ that were cancelled
  std::vector<StepRecord::Arrival> arrived_;
  std::vector<RequestId> failed_members_;
  RequestId fork_parent_ = 0;  // requests with forks_first fork from this one

  std::thread thread_;
};

}  // namespace hearth
