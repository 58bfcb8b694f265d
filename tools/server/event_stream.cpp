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

// The oldest step of [from, to) that is still recorded; `to` if none is.
uint64_t first_recorded(const StepRing& ring, uint64_t from, uint64_t to) {
  StepRecord record;
  while (from < to) {
    const uint64_t middle = from + (to - from) / 2;
    if (ring.read(middle, record))
      to = middle;
    else
      from = middle + 1;
  }
  return to;
}

bool same_settings(const EngineHello& a, const EngineHello& b) {
  return a.policy == b.policy && a.limits.max_sequences == b.limits.max_sequences &&
         a.limits.max_step_tokens == b.limits.max_step_tokens &&
         a.limits.pool_blocks == b.limits.pool_blocks && a.paused == b.paused && a.pace == b.pace;
}

}  // namespace

void stream_events(const Engine& engine, const std::function<EngineHello()>& hello,
                   uint64_t history, HttpReply& reply, const std::atomic<bool>& end) {
  constexpr auto kInterval = std::chrono::milliseconds(20);
  constexpr int kQuietIntervals = 5;           // without a step, before counts are sent
  constexpr size_t kMostBacklogBytes = 65536;  // beyond it, steps are skipped
  constexpr uint64_t kStepsBack = 64;          // where a client continues that missed some
  const StepRing& ring = engine.records();
  const uint64_t present = ring.written();
  uint64_t next = first_recorded(ring, present - std::min(present, history), present);
  EngineHello told = hello();
  // The client learns what it is connected to before the first step.
  if (!reply.begin("text/event-stream") ||
      !reply.write(": steps\n\n" + named_event(kHelloEvent, hello_event(told))))
    return;
  int quiet = 0;
  SchedulerCounts sent;  // last
  StepRecord record;
  HttpClock::time_point asked = HttpClock::now();
  while (!end) {
    if (HttpClock::now() - asked >= kInterval) {
      asked = HttpClock::now();
      if (EngineHello latest = hello(); !same_settings(latest, told)) {
        told = std::move(latest);
        if (!reply.write(named_event(kHelloEvent, hello_event(told)))) return;
      }
    }
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
      next = next < present ? first_recorded(ring, next + 1, present)
                            : std::max(next + 1, written > kStepsBack ? written - kStepsBack : 0);
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
