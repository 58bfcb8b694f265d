// Makes up requests for the engine that is shown: at a rate, in bursts, or as a trace says. Of the
// window's thread alone, called once a frame; nothing here waits. Prompts are ids of text chosen at
// random, generations go on to their length.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "runtime/result.h"
#include "tools/replay/prompt_maker.h"
#include "tools/replay/seeded_random.h"
#include "tools/replay/trace.h"
#include "ui/data/background_task.h"

namespace hearth {

struct LoadSettings {
  double rate = 2;  // requests a second on average, independently of each other; 0: none
  uint32_t prompt_min = 16, prompt_max = 120;
  uint32_t generate_min = 8, generate_max = 96;
  uint32_t shared_prefix = 0;  // tokens before every prompt, the same in all
};

struct LoadCounts {
  uint64_t submitted = 0, running = 0;  // running: accepted and not ended, waiting ones included
  uint64_t ended = 0;                   // with all their tokens
  uint64_t failed = 0;                  // ended otherwise
  uint64_t refused = 0;
  uint64_t tokens = 0;  // received
};

// Where requests go, this frame.
struct LoadTarget {
  Engine* engine = nullptr;  // null: nowhere
  const Tokenizer* tokenizer = nullptr;
  uint64_t generation = 0;  // another number: another engine
};

class LoadGenerator {
 public:
  // The same seed and the same calls: the same requests.
  explicit LoadGenerator(uint64_t seed = 1) : seed_(seed), random_(seed) {}

  // May be changed at any time. Ranges the wrong way round are turned.
  LoadSettings settings;

  void start() { started_ = true; }
  void stop() { started_ = false; }
  bool started() const { return started_; }
  // So many at once, at the next update().
  void burst(uint32_t requests) { burst_ += requests; }
  // Cancels all that runs, and stops.
  void cancel_all();

  // Reads the trace in the background and plays it, arrivals `speed` times as fast: a file or
  // "synthetic:...". What is wrong with it is in trace_failure().
  void play_trace(const std::string& what, double speed);
  void stop_trace();
  bool reading_trace() const { return requested_trace_.has_value(); }
  bool playing_trace() const { return next_in_trace_ < trace_.requests.size(); }
  size_t trace_requests() const { return trace_.requests.size(); }
  size_t trace_submitted() const { return next_in_trace_; }
  const std::string& trace_failure() const { return trace_failure_; }

  // Submits what is due at `now` (seconds on any clock that goes on), and takes tokens that have
  // come. Another engine: everything stops and the counts begin anew.
  void update(const LoadTarget& target, double now);

  const LoadCounts& counts() const { return counts_; }
  // Why the last refused one was; empty if the last was accepted.
  const std::string& refusal() const { return refusal_; }

 private:
  void reset_for(const LoadTarget& target);
  TraceRequest random_request();
  void submit_due(Engine& engine, double now);
  void play_due(Engine& engine, double now);
  void submit(Engine& engine, std::vector<TraceRequest> requests, bool of_trace);
  void read_trace_file();
  void drain_streams();

  const uint64_t seed_;
  SeededRandom random_;
  std::unique_ptr<PromptMaker> prompts_, trace_prompts_;
  uint64_t generation_ = 0;
  bool started_ = false;
  double last_rate_ = 0;
  std::optional<double> next_due_;  // when the next request is due
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

  std::vector<std::shared_ptr<TokenStream>> streams_;
  LoadCounts counts_;
  std::string refusal_;
};

}  // namespace hearth
