// Generates synthetic requests for the engine on display: at a rate, in bursts, or from a trace.
// Prompts are random text tokens; every request generates its full length. Never blocks. Call only
// from the window's thread, once per frame.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/scheduling/scheduler_views.h"
#include "runtime/result.h"
#include "tools/replay/prompt_maker.h"
#include "tools/replay/seeded_random.h"
#include "tools/replay/trace.h"
#include "ui/data/background_task.h"
#include "ui/feeds/remote_calls.h"

namespace hearth {

struct LoadSettings {
  double rate = 2;  // Poisson arrivals, in requests per second; 0: none
  uint32_t prompt_min = 16, prompt_max = 120;
  uint32_t generate_min = 8, generate_max = 96;
  uint32_t shared_prefix = 0;  // tokens at the start of every prompt, the same in all
  uint32_t beams = 1;          // of each request, which is a beam search if there is more than one
};

struct LoadCounts {
  uint64_t sent = 0;        // all of them; each is later one of the following
  uint64_t unanswered = 0;  // accepted, and not ended in what is on display
  uint64_t answered = 0;    // ended with all their tokens
  uint64_t failed = 0;      // cancelled or failed
  uint64_t refused = 0;
  uint64_t tokens = 0;  // generated
};

// Where requests are sent in this frame.
struct LoadTarget {
  Engine* engine = nullptr;  // null: none, or a server
  const Tokenizer* tokenizer = nullptr;
  uint64_t generation = 0;  // changes with the engine
  // What panels show in this frame, which is a few frames old: a request that is still among these
  // is not counted as answered, so that no other panel shows it as running.
  std::span<const SequenceView> shown;
  // The server, if it is one.
  RemoteCalls* remote = nullptr;
  SchedulerLimits remote_limits;
  uint32_t remote_vocabulary = 0;
};

class LoadGenerator {
 public:
  // The same seed and the same calls give the same requests.
  explicit LoadGenerator(uint64_t seed = 1) : seed_(seed), random_(seed) {}

  // May be changed at any time. A reversed range is accepted.
  LoadSettings settings;

  void start() { started_ = true; }
  void stop() { started_ = false; }
  bool started() const { return started_; }
  // Submits `requests` requests together with the next update().
  void burst(uint32_t requests) { burst_ += requests; }
  // Cancels all unanswered requests and stops.
  void cancel_all();

  // Reads a trace (a file or "synthetic:...") in the background and plays it with arrivals `speed`
  // times as fast. trace_failure() reports errors.
  void play_trace(const std::string& what, double speed);
  void stop_trace();
  bool reading_trace() const { return requested_trace_.has_value(); }
  bool playing_trace() const { return next_in_trace_ < trace_.requests.size(); }
  size_t trace_requests() const { return trace_.requests.size(); }
  size_t trace_submitted() const { return next_in_trace_; }
  const std::string& trace_failure() const { return trace_failure_; }

  // Submits the requests due at `now` (seconds on any steady clock) and collects tokens. When the
  // engine changes, everything stops and the counts are reset.
  void update(const LoadTarget& target, double now);

  const LoadCounts& counts() const { return counts_; }
  // Why the last request was refused; empty if it was accepted.
  const std::string& refusal() const { return refusal_; }

 private:
  void reset_for(const LoadTarget& target);
  TraceRequest random_request();
  void submit_due(const LoadTarget& target, double now);
  void play_due(const LoadTarget& target, double now);
  void submit(const LoadTarget& target, std::vector<TraceRequest> requests, bool of_trace);
  void post(RemoteCalls& server, const GenerationRequest& generation);
  void read_trace_file();
  void drain_streams(std::span<const SequenceView> shown);

  const uint64_t seed_;
  SeededRandom random_;
  std::unique_ptr<PromptMaker> prompts_, trace_prompts_;
  uint64_t generation_ = 0;
  bool started_ = false;
  double last_rate_ = 0;
  std::optional<double> next_due_;
  uint32_t burst_ = 0;
  uint64_t prompts_made_ = 0;

  struct RequestedTrace {
    std::string what;
    double speed = 1;
    bool operator==(const RequestedTrace&) const = default;
  };
  struct ReadTrace {
    RequestedTrace requested;
    Result<Trace> trace;
  };
  BackgroundTask<ReadTrace> reading_;
  std::optional<RequestedTrace> requested_trace_;  // until it is read
  Trace trace_;
  size_t next_in_trace_ = 0;
  std::optional<double> trace_started_;
  std::string trace_failure_;

  std::vector<TokenStream> streams_;
  struct PostedRequest {
    std::shared_ptr<RemoteCall> call;
    uint32_t tokens = 0;  // that it generates
  };
  std::vector<PostedRequest> posted_;  // to a server
  LoadCounts counts_;
  std::string refusal_;
};

}  // namespace hearth
