// The engine: takes requests from any thread, runs them together on its own thread, and delivers
// tokens as they are generated. README.md of this folder has the picture.
//
// A facade over four parts: the mailbox, where calls end; the request table; the step loop; and the
// publisher of metrics and records. The engine thread, run() in engine.cpp, connects them.
//
// All public functions are thread-safe. A request that can never run is refused by submit(). An
// accepted request always ends, and its stream says how. A failing request does not affect the
// others; only a lost device ends them all, each with an error, and every later submit() fails.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/drafter.h"
#include "engine/generation.h"
#include "engine/grammar_vocabulary.h"
#include "engine/mailbox.h"
#include "engine/metrics.h"
#include "engine/model/step_executor.h"
#include "engine/publisher.h"
#include "engine/request_table.h"
#include "engine/scheduling/scheduler.h"
#include "engine/step_loop.h"
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
  TimeSource* time = &real_time();         // the clock of everything; it outlives the engine
  SpeculationOptions speculation;          // of all requests
  StepExecutor* draft_executor = nullptr;  // runs the draft model; it outlives the engine
  DrafterOptions drafter;                  // if there is one
  // Contrastive decoding, of requests that do not say otherwise. Empty: the executor has no amateur
  // model.
  std::optional<ContrastOptions> contrast;
  bool keeps_hidden = true;  // whether the executor keeps hidden states, for contrastive search
  BlockObserver* block_observer = nullptr;  // of the prefix cache; it outlives the engine
  // Checks the scheduler's invariants after every step; a violation aborts with a message.
#ifdef NDEBUG
  bool check_integrity = false;
#else
  bool check_integrity = true;
#endif
};

class Engine {
 public:
  // From now on only the engine thread uses `executor`. `tokenizer` may be null. Both must outlive
  // the engine.
  Engine(StepExecutor& executor, const Tokenizer* tokenizer, const EngineOptions& options);
  // Cancels all requests and joins the engine thread.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Queues a request, or says why it is refused. Dropping the stream cancels the request.
  Result<TokenStream> submit(GenerationRequest request);
  // Queues several requests that are admitted in the same step. Accepts all of them or none.
  Result<std::vector<TokenStream>> submit(std::vector<GenerationRequest> requests);
  // Queues `n` completions of one prompt, which share its KV blocks. Their seeds count up from the
  // request's.
  Result<std::vector<TokenStream>> submit_n(const GenerationRequest& request, uint32_t n);
  // After how many seconds a submit() that failed with kBusy may succeed.
  double retry_seconds() const { return mailbox_->retry_seconds(); }
  // Ends the request within one step. Unknown ids are ignored.
  void cancel(RequestId request) { mailbox_->cancel(request); }
  // Takes effect at the next step, for a waiting or running request. Unknown ids are ignored.
  void set_priority(RequestId request, int32_t priority);

  void set_policy(const Policy& policy);
  Policy policy() const { return mailbox_->settings().policy; }
  // Checks whether a prompt can ever run, so that callers need not copy it first. If it cannot,
  // `requests` are counted as refused.
  AddResult check_prompt(std::span<const TokenId> prompt, size_t requests);

  // Changes limits while running, up to those the engine was created with (initial_limits()).
  // `pool_blocks` 0 leaves the pool as it is. A smaller pool withholds blocks and preempts requests
  // if necessary, but never drops below what the largest present request needs. The result is in
  // limits() before the next step.
  void set_limits(uint32_t max_sequences, uint32_t max_step_tokens, uint32_t pool_blocks = 0);
  SchedulerLimits limits() const { return mailbox_->settings().limits; }
  const SchedulerLimits& initial_limits() const { return options_.limits; }
  uint32_t vocabulary() const { return options_.vocabulary; }  // 0: not known
  // What grammars need of the tokenizer; null if there is none. The first call may take a while, so
  // a server makes it before the first request with a grammar does.
  std::shared_ptr<const grammar::TokenTrie> token_trie();

  void pause() { mailbox_->pause(); }
  void resume() { mailbox_->resume(); }
  // While paused; does nothing if there is no work.
  void step_once() { mailbox_->step_once(); }
  // Slow motion; 0: as fast as possible.
  void set_pace(double steps_per_s) { mailbox_->set_pace(steps_per_s); }

  // Refuses new requests, resumes if paused, and returns when all accepted requests have ended.
  void drain() { mailbox_->drain(); }
  // Accepts requests again.
  void undrain() { mailbox_->undrain(); }

  EngineState state() const { return mailbox_->state(); }
  std::string failure() const { return mailbox_->failure(); }  // why, in state kFailed
  // Refuses new requests from now on: the device is known to be lost. Open ones end with their next
  // step, which fails.
  void refuse(std::string why) { mailbox_->fail(std::move(why)); }
  // Fills in the counts that metrics() also has as gauges: requests, and blocks used, cached and
  // free. They are current between steps, too.
  void read_gauges(SchedulerCounts& counts) const { publisher_.read_gauges(counts); }
  const Metrics& metrics() const { return publisher_.metrics(); }
  const StepRing& records() const { return publisher_.records(); }
  // Since the engine was created; the clock of StepRecords.
  double seconds() const { return publisher_.seconds(); }

  // Runs `look` on the engine thread between two steps and returns when it is done. For the
  // dashboard's view of blocks and sequences.
  void inspect(const std::function<void(const Scheduler&)>& look);

 private:
  Result<std::vector<TokenStream>> post(std::vector<GenerationRequest> requests);

  // The engine thread.
  void run();
  void read_mail();
  void resume_constrained();
  bool begin_step();
  void finish_step();
  void rest();
  void sleep();
  void fail(const Error& error);

  const EngineOptions options_;
  const Tokenizer* tokenizer_;
  std::unique_ptr<GrammarVocabulary> grammar_vocabulary_;  // null without a tokenizer
  Publisher publisher_;
  const std::shared_ptr<Mailbox> mailbox_;

  // Used by the engine thread only.
  Scheduler scheduler_;
  std::unique_ptr<SharedNgrams> outputs_;  // null: requests do not guess from each other's output
  RequestTable requests_;
  std::unique_ptr<Drafter> drafter_;  // null: there is no draft model
  StepLoop steps_;
  Mailbox::Mail mail_;

  std::thread thread_;
};

}  // namespace hearth
