#include "tools/replay/replay_runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace hearth {
namespace {

// Reads the engine's records from a thread of its own. It looks now and then instead of being woken
// at every token: the engine must not be slowed by being watched, and the ring keeps thousands.
class RecordReader {
 public:
  RecordReader(const StepRing& ring, StepSink sink)
      : ring_(ring), sink_(std::move(sink)), thread_([this] { loop(); }) {}
  ~RecordReader() { stop(); }
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  // Reads what is there and ends.
  void stop() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    thread_.join();
  }
  // Records that were overwritten before they were read. After stop().
  uint64_t lost() const { return lost_; }

 private:
  void loop() {
    constexpr std::chrono::milliseconds kInterval{10};
    while (!stopping_) {
      read_all();
      std::this_thread::sleep_for(kInterval);
    }
    read_all();
  }
  void read_all() {
    for (const uint64_t written = ring_.written(); next_ < written; ++next_) {
      if (ring_.read(next_, record_))
        sink_(record_);
      else
        ++lost_;
    }
  }

  const StepRing& ring_;
  StepSink sink_;
  StepRecord record_;
  uint64_t next_ = 0, lost_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

GenerationRequest make_request(const TraceRequest& request, const std::vector<TokenId>& prompt) {
  GenerationRequest made{.prompt = prompt};
  made.sampling.temperature = 0;
  made.max_tokens = request.generated_tokens;
  made.ignore_end = true;
  return made;
}

using Streams = std::vector<std::shared_ptr<TokenStream>>;

// Requests that are due at the same time are submitted together.
Status submit_when_due(Engine& engine, const ReplayInput& input, double begin, Streams& streams) {
  const std::vector<TraceRequest>& requests = input.trace.requests;
  double now = 0;
  while (streams.size() < requests.size()) {
    std::vector<GenerationRequest> due;
    for (size_t i = streams.size(); i < requests.size() && requests[i].arrival_seconds <= now; ++i)
      due.push_back(make_request(requests[i], input.prompts[i]));
    if (due.empty()) {
      constexpr double kLongestSleep = 0.1;
      const double wait = requests[streams.size()].arrival_seconds - now;
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(wait, kLongestSleep)));
    } else {
      HEARTH_ASSIGN(Streams accepted, engine.submit(std::move(due)));
      for (std::shared_ptr<TokenStream>& stream : accepted) streams.push_back(std::move(stream));
    }
    now = engine.seconds() - begin;
    if (engine.state() == EngineState::kFailed)
      return Error{ErrorKind::kDeviceLost, engine.failure()};
  }
  return {};
}

// How the stream ended; its tokens are not needed, only when they came.
const GenerationEnd& read_end(TokenStream& stream) {
  while (stream.next()) {
  }
  return stream.end();
}

}  // namespace

Result<ReplayRun> run_replay(Engine& engine, const ReplayInput& input) {
  StepTally tally;
  ReplayRun run;
  run.begin = engine.seconds();
  if (input.begin) input.begin(run.begin);
  RecordReader reader(engine.records(), [&](const StepRecord& record) {
    tally.add(record);
    if (input.step) input.step(record);
  });
  Streams streams;
  HEARTH_TRY(submit_when_due(engine, input, run.begin, streams));
  engine.drain();
  // The last step's record is published after its requests have ended: an errand comes after it.
  engine.inspect([](const Scheduler&) {});
  reader.stop();
  if (engine.state() == EngineState::kFailed)
    return Error{ErrorKind::kDeviceLost, engine.failure()};
  if (reader.lost() > 0)
    return Error{ErrorKind::kInternal, fmt::format("{} step records were overwritten before they "
                                                   "were read: steps are too short",
                                                   reader.lost())};

  const SchedulerLimits limits = engine.limits();
  run.max_sequences = limits.max_sequences;
  run.pool_blocks = limits.pool_blocks;
  run.query_tokens = engine.metrics().prefix_query_tokens.value();
  run.hit_tokens = engine.metrics().prefix_hit_tokens.value();
  run.steps = tally.use();
  for (size_t i = 0; i < streams.size(); ++i) {
    const GenerationEnd& end = read_end(*streams[i]);
    RequestTiming timing{.arrival = run.begin + input.trace.requests[i].arrival_seconds,
                         .token_times = tally.take_token_times(streams[i]->request())};
    // A step under way when its request ended counts for nobody.
    if (timing.token_times.size() > end.generated_tokens)
      timing.token_times.resize(end.generated_tokens);
    timing.failed = end.reason != FinishReason::kLength;
    run.prompt_tokens += end.prompt_tokens;
    run.cached_tokens.push_back(end.cached_tokens);
    run.requests.push_back(std::move(timing));
  }
  return run;
}

}  // namespace hearth
