#include "tools/server/event_stream.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "tools/server/openai_reply.h"

namespace hearth {
namespace {

std::string named_event(std::string_view name, const nlohmann::json& object) {
  return fmt::format("event: {}\n{}", name, to_event(object));
}

}  // namespace

void stream_events(const Engine& engine, const EngineHello& hello, HttpReply& reply,
                   const std::atomic<bool>& end) {
  constexpr auto kInterval = std::chrono::milliseconds(20);
  constexpr int kQuietIntervals = 5;           // without a step, before counts are sent
  constexpr size_t kMostBacklogBytes = 65536;  // beyond it, steps are skipped
  constexpr uint64_t kStepsBack = 64;          // where a client goes on that missed some
  const StepRing& ring = engine.records();
  uint64_t next = ring.written();
  // The client learns what it is connected to before the first step.
  if (!reply.begin("text/event-stream") ||
      !reply.write(": steps\n\n" + named_event(kHelloEvent, hello_event(hello))))
    return;
  int quiet = 0;
  SchedulerCounts sent;  // last
  StepRecord record;
  while (!end) {
    const uint64_t written = ring.written();
    if (next == written || reply.backlog() > kMostBacklogBytes) {
      std::this_thread::sleep_for(kInterval);
      if (!reply.flush() || reply.client_gone()) return;
      if (next != written || ++quiet < kQuietIntervals) continue;
      // Requests arrive while no step runs, and end after the last one.
      SchedulerCounts counts = sent;
      engine.read_gauges(counts);
      if (counts == sent) continue;
      sent = counts;
      if (!reply.write(named_event(kCountsEvent, counts_event(sent)))) return;
      continue;
    }
    quiet = 0;
    if (!ring.read(next, record)) {
      next = std::max(next + 1, written > kStepsBack ? written - kStepsBack : 0);
      continue;
    }
    ++next;
    sent = record.counts;
    if (!reply.write(to_event(step_event(record)))) return;
  }
  // There is no last event worth waiting for.
  reply.end(std::chrono::milliseconds(100));
}

}  // namespace hearth
