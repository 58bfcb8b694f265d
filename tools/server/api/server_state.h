// What the handlers of all addresses share: the model, the threads that make prompts, stored
// responses, and whether the server is about to end. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <string>

#include "tools/server/api/exchange.h"
#include "tools/server/api/response_store.h"
#include "tools/server/prompt_workers.h"
#include "tools/server/served_model.h"
#include "tools/server/structured_fields.h"

namespace hearth {

int64_t unix_seconds();

class ServerState {
 public:
  // `request_seconds`: a request's time limit; 0: none. `comment_seconds`: the longest silence of a
  // stream.
  ServerState(double request_seconds, double comment_seconds);
  ServerState(const ServerState&) = delete;
  ServerState& operator=(const ServerState&) = delete;

  // Each is called once at most.
  void serve(const ServedModel& model);
  void fail(std::string reason);

  struct Health {
    int status = 200;
    std::string state, message;
  };
  Health health() const;

  // Null until serve().
  const ServedModel* model() const { return model_.load(); }
  // The model, if it takes requests; otherwise null, and the reply says why.
  const ServedModel* ready(Exchange& exchange) const;
  // The model, once it is loaded: its numbers can be read while it drains.
  const ServedModel* loaded(Exchange& exchange) const;

  // When a request that begins now has to be done.
  HttpClock::time_point deadline() const;
  HttpClock::duration comment_interval() const { return comment_interval_; }
  // The client has left, or the server has no time left for this reply.
  bool is_gone(HttpReply& reply) const { return cut_off_ || !reply.flush() || reply.client_gone(); }
  // Runs a task on the threads that make prompts. False: it did not end in time, and the reply says
  // so.
  bool run_prompt_task(const PromptWorkers::Task& task, HttpClock::time_point deadline,
                       Exchange& exchange);
  // The same for grammars, on threads of their own.
  bool run_grammar_task(const PromptWorkers::Task& task, HttpClock::time_point deadline,
                        Exchange& exchange);
  GrammarCache& grammars() { return grammars_; }
  // 64 random bits in hexadecimal.
  std::string next_id();

  // POST /control, for servers that were started with --control.
  void allow_control() { controllable_ = true; }
  bool controllable() const { return controllable_; }
  // What it last set as the engine's pace.
  void set_pace(double steps_per_s) { pace_ = steps_per_s; }
  double pace() const { return pace_; }

  ResponseStore& responses() { return responses_; }
  int64_t started() const { return started_; }

  void end_events() { events_end_ = true; }
  const std::atomic<bool>& events_end() const { return events_end_; }  // streams of /events end
  void cut_off() { cut_off_ = true; }
  bool is_cut_off() const { return cut_off_; }  // open requests are cancelled

 private:
  bool run(PromptWorkers& workers, const PromptWorkers::Task& task, HttpClock::time_point deadline,
           Exchange& exchange);

  const double request_seconds_;
  const HttpClock::duration comment_interval_;
  const int64_t started_ = unix_seconds();
  std::unique_ptr<const ServedModel> owned_;
  std::atomic<const ServedModel*> model_{nullptr};  // owned_, once it is there
  std::atomic<bool> events_end_{false}, cut_off_{false}, controllable_{false};
  std::atomic<double> pace_{0};
  mutable std::mutex mutex_;
  std::string failure_;
  std::random_device random_;
  ResponseStore responses_;
  PromptWorkers prompt_workers_, grammar_workers_;
  GrammarCache grammars_;
};

}  // namespace hearth
