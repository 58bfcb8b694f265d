// The engine: takes requests from any thread, runs them all in one batch on its own thread, and
// hands out tokens as they come. README.md of this folder has the picture.
//
// All public functions are thread-safe. A request that cannot be served is refused at submit();
// after that it always ends, and its stream says how. Whatever happens to one request, the others
// go on; only a lost device ends them all, each with an error, and the engine then refuses.
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
#include "engine/token_stream.h"
#include "runtime/result.h"

namespace hearth {

class Tokenizer;

struct EngineOptions {
  SchedulerLimits limits;
  Policy policy;
  uint32_t vocabulary = 0;       // ids of prompts are below it; 0: not known here
  size_t recorded_steps = 4096;  // that StepRing keeps
  bool start_paused = false;
  // After every step; a failure ends the process with a message.
#ifdef NDEBUG
  bool check_integrity = false;
#else
  bool check_integrity = true;
#endif
};

enum class EngineState { kRunning, kPaused, kDraining, kFailed };

class Engine {
 public:
  // `executor` is used by the engine thread alone from now on. `tokenizer` may be null. Both
  // outlive the engine.
  Engine(StepExecutor& executor, const Tokenizer* tokenizer, const EngineOptions& options);
  // Cancels what is running and waits for the engine thread.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Queues a request, or says why not. Who lets go of the stream has cancelled the request: nobody
  // could read it any more.
  Result<std::shared_ptr<TokenStream>> submit(GenerationRequest request);
  // Several at once: they are admitted in one step. All or none.
  Result<std::vector<std::shared_ptr<TokenStream>>> submit(std::vector<GenerationRequest> requests);
  // `n` completions of one prompt, whose blocks they share; seeds count up from the request's.
  Result<std::vector<std::shared_ptr<TokenStream>>> submit_n(const GenerationRequest& request,
                                                             uint32_t n);
  // It ends within a step. Unknown ids are ignored.
  void cancel(RequestId request);
  // Of a request that waits or runs, from the next step on. Unknown ids are ignored.
  void set_priority(RequestId request, int32_t priority);

  void set_policy(const Policy& policy);
  Policy policy() const;
  // Whether a prompt could run at all, for who would copy it first; if not, so many requests count
  // as refused.
  AddResult check_prompt(std::span<const TokenId> prompt, size_t requests);

  // At most what the engine was made for: see made_limits(). pool_blocks 0: as it is. Blocks beyond
  // a smaller pool are withheld, and requests put out for it if need be; it stays as large as the
  // largest request that is there needs. What has come of it is in limits() before the next step.
  void set_limits(uint32_t max_sequences, uint32_t max_step_tokens, uint32_t pool_blocks = 0);
  SchedulerLimits limits() const;
  const SchedulerLimits& made_limits() const { return options_.limits; }
  uint32_t vocabulary() const { return options_.vocabulary; }  // 0: not known here

  void pause();
  void resume();
  void step_once();                   // while paused; nothing happens if there is nothing to do
  void set_pace(double steps_per_s);  // slow motion; 0: as fast as can be

  // Refuses new requests, goes on if it was paused, and returns when the others have ended.
  void drain();
  // Lets requests in again.
  void undrain();

  EngineState state() const;
  std::string failure() const;  // why, in state kFailed
  // What of the scheduler's counts metrics() has as gauges, which follow between steps, too:
  // requests, and blocks that are used, cached and free.
  void read_gauges(SchedulerCounts& counts) const;
  const Metrics& metrics() const { return metrics_; }
  const StepRing& records() const { return records_; }
  double seconds() const;  // since the engine began, as StepRecords count

  // Runs `look` on the engine thread between two steps, and returns when it has run. For the
  // dashboard's view of blocks and sequences.
  void inspect(const std::function<void(const Scheduler&)>& look);

 private:
  struct Control {
    bool paused = false, draining = false, closing = false;
    uint32_t single_steps = 0;
    double pace = 0;
  };
  struct UnderWay {
    StepTicket ticket;
    std::vector<RequestId> sampled;  // by logit row
    StepRecord record;
  };

  // Places in the queue that are taken and not used yet; they are given back.
  struct QueuePlaces {
    Engine& engine;
    size_t count = 0;
    ~QueuePlaces();
  };

  // Whether so many more requests may come now. REQUIRES: mutex_ is held.
  Status check_room(size_t requests) const;
  Result<std::unique_ptr<ActiveRequest>> make_request(GenerationRequest request, RequestId id,
                                                      const SchedulerLimits& limits) const;
  template <class Change>
  void change_control(Change change);
  // Runs on the engine thread between two steps; returns when it has.
  void run_errand(std::function<void()> errand);

  // The engine thread: messages from callers,
  void loop();
  void take_messages();
  void handle_messages();
  void take_and_handle_messages();
  bool take_turn();
  EngineClock::time_point next_turn() const;
  void wait_for_work();
  void accept_new(std::unique_ptr<ActiveRequest> request);
  void end_expired();
  // steps,
  bool begin_step();
  Status move_blocks(const BatchPlan& plan);
  Status prepare_slots(const BatchPlan& plan, EngineClock::time_point now);
  void make_batch(const BatchPlan& plan, UnderWay& step);
  void note_plan(const BatchPlan& plan, StepRecord& record) const;
  void end_step();
  void publish(StepRecord& record);
  void show_counts(const SchedulerCounts& counts);
  void check_integrity() const;
  // and ends.
  void end_request(RequestId id, FinishReason reason, std::string message = {});
  void count_end(const ActiveRequest& request, FinishReason reason);
  void fail_step(const BatchPlan& plan, bool prepared, const Error& error);
  void fail(const Error& error);
  void end_everything(FinishReason reason, const std::string& message);

  StepExecutor& executor_;
  const Tokenizer* tokenizer_;
  const EngineOptions options_;
  const EngineClock::time_point began_ = EngineClock::now();
  Metrics metrics_;
  StepRing records_;

  // Between callers and the engine thread.
  mutable std::mutex mutex_;
  std::condition_variable wake_, changed_;
  std::vector<std::unique_ptr<ActiveRequest>> new_requests_;
  std::vector<RequestId> cancelled_;
  std::vector<std::function<void()>> errands_;  // run on the engine thread
  Control control_;
  Policy policy_;
  SchedulerLimits limits_;
  size_t queued_ = 0;      // requests that have a place in the queue and were not yet admitted once
  size_t unfinished_ = 0;  // requests that were accepted and have not ended
  std::string failure_;
  RequestId next_id_ = 1;

  // Of the engine thread alone.
  Scheduler scheduler_;
  std::unordered_map<RequestId, std::unique_ptr<ActiveRequest>> active_;
  std::vector<std::unique_ptr<ActiveRequest>> incoming_;
  std::vector<RequestId> leaving_;
  std::vector<std::function<void()>> running_errands_;
  StepBatch batch_;
  UnderWay steps_[StepExecutor::kStepsUnderWay];
  size_t first_step_ = 0, steps_under_way_ = 0;
  EngineClock::time_point last_begin_ = {}, last_end_ = {};
  std::vector<RequestId> finished_,
      cancelled_ones_;  // since the last record; all, and some of them
  std::vector<StepRecord::Arrival> arrived_;
  std::vector<RequestId> failed_members_;
  RequestId first_of_batch_ = 0;  // what the completions after it fork from

  std::thread thread_;
};

}  // namespace hearth
