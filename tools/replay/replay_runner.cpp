#include "tools/replay/replay_runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace hearth {
namespace {

// Reads the engine's records on its own thread. It polls instead of being woken at every token:
// being watched must not slow the engine, and the ring keeps thousands of records.
class RecordReader {
 public:
  RecordReader(const StepRing& ring, StepSink sink)
      : cursor_(ring, std::move(sink)), thread_([this] { loop(); }) {}
  ~RecordReader() { stop(); }
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  // Reads the records that are left and ends the thread.
  void stop() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    thread_.join();
  }
  // REQUIRES: stop() was called.
  uint64_t lost() const { return cursor_.lost(); }

 private:
  void loop() {
    constexpr std::chrono::milliseconds kInterval{10};
    while (!stopping_) {
      cursor_.read_new();
      std::this_thread::sleep_for(kInterval);
    }
    cursor_.read_new();
  }

  RecordCursor cursor_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

Status submit_when_due(Engine& engine, const ReplayInput& input, double begin,
                       ReplayStreams& streams) {
  const std::vector<TraceRequest>& requests = input.trace.requests;
  double now = 0;
  while (streams.size() < requests.size()) {
    if (const double wait = requests[streams.size()].arrival_seconds - now; wait > 0) {
      constexpr double kLongestSleep = 0.1;
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(wait, kLongestSleep)));
    } else {
      HEARTH_TRY(submit_due(engine, input, now, streams));
    }
    now = engine.seconds() - begin;
    if (engine.state() == EngineState::kFailed)
      return Error{ErrorKind::kDeviceLost, engine.failure()};
  }
  return {};
}

}  // namespace

Result<ReplayRun> run_replay(Engine& engine, const ReplayInput& input) {
  StepTally tally;
  const double begin = engine.seconds();
  if (input.begin) input.begin(begin);
  RecordReader reader(engine.records(), [&](const StepRecord& record) {
    tally.add(record);
    if (input.step) input.step(record);
  });
  ReplayStreams streams;
  HEARTH_TRY(submit_when_due(engine, input, begin, streams));
  engine.drain();
  // The last step's record is published after its requests have ended, and before this runs.
  engine.inspect([](const Scheduler&) {});
  reader.stop();
  if (reader.lost() > 0)
    return Error{ErrorKind::kInternal, fmt::format("{} step records were overwritten before they "
                                                   "were read: steps are too short",
                                                   reader.lost())};
  return collect_run(engine, input.trace, begin, streams, tally);
}

}  // namespace hearth
