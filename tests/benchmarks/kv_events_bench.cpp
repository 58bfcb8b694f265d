// What KV events cost the engine thread: the time to plan a decode step of many streams, without
// anyone who observes the blocks, and with a publisher and a subscriber. A step of a model of 8
// billion parameters on an H200 takes 6 ms for 64 streams; the engine plans while it runs, so even
// the difference below costs no speed unless planning becomes the longer part.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "engine/scheduling/scheduler.h"
#include "tools/kv_events/event_publisher.h"
#ifdef HEARTH_HAS_ZMQ
#include <zmq.h>
#endif

namespace hearth {
namespace {

constexpr std::uint32_t kStreams = 64, kSteps = 4000;
constexpr double kStepMicros = 6000;

struct PlanTimes {
  double mean_micros = 0, median_micros = 0;
};

// Streams of 1,000 tokens each that start at different times, so that blocks fill at every step and
// old ones are evicted.
PlanTimes plan_steps(BlockObserver* observer) {
  Scheduler scheduler({.max_sequences = kStreams,
                       .max_step_tokens = 512,
                       .context = 2048,
                       .pool_blocks = 6000,
                       .max_queue = kStreams},
                      *named_policy("continuous"));
  scheduler.observe_blocks(observer);
  RequestId next = 1;
  const auto add = [&](std::uint32_t prompt_tokens) {
    std::vector<TokenId> prompt(prompt_tokens);
    for (std::size_t i = 0; i < prompt.size(); ++i)
      prompt[i] = static_cast<TokenId>(next * 7919 + i * 31);
    scheduler.add(next++, {.prompt = prompt, .max_new_tokens = 1000});
  };
  for (std::uint32_t i = 0; i < kStreams; ++i) add(100 + i * 7);
  std::vector<RequestId> sampled, before;
  std::vector<double> micros;
  std::vector<std::uint32_t> generated(kSteps * 4, 0);
  for (std::uint32_t step = 0; micros.size() < kSteps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    const BatchPlan& plan = scheduler.plan();
    std::swap(sampled, before);
    sampled.clear();
    for (const BatchMember& member : plan.members)
      if (member.samples) sampled.push_back(member.request);
    for (const RequestId id : before) scheduler.token(id, static_cast<TokenId>(step));
    const auto end = std::chrono::steady_clock::now();
    if (plan.members.size() == kStreams)
      micros.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
    for (const RequestId id : before)
      if (++generated[id] == 900) {
        scheduler.finish(id);
        add(200);
      }
    // The device runs the step; shortened, so that this does not take minutes.
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  PlanTimes times;
  for (const double value : micros) times.mean_micros += value / kSteps;
  std::sort(micros.begin(), micros.end());
  times.median_micros = micros[micros.size() / 2];
  return times;
}

void report(const char* name, const PlanTimes& times, const PlanTimes& without) {
  std::printf("%-34s %8.2f %8.2f %12.4f %%\n", name, times.mean_micros, times.median_micros,
              100 * (times.mean_micros - without.mean_micros) / kStepMicros);
}

int run() {
  std::printf("%u streams; microseconds per planned step on the engine thread\n\n", kStreams);
  std::printf("%-34s %8s %8s %14s\n", "", "mean", "median", "of 6 ms");
  const PlanTimes without = plan_steps(nullptr);
  report("without events", without, without);
#ifdef HEARTH_HAS_ZMQ
  auto publisher = EventPublisher::create(
      {.endpoint = "@tcp://127.0.0.1:*", .replay_endpoint = "tcp://127.0.0.1:*"});
  if (!publisher.ok()) {
    std::fprintf(stderr, "%s\n", publisher.error().message.c_str());
    return EXIT_FAILURE;
  }
  void* const context = zmq_ctx_new();
  void* const socket = zmq_socket(context, ZMQ_SUB);
  const int timeout_ms = 100;
  zmq_setsockopt(socket, ZMQ_RCVTIMEO, &timeout_ms, sizeof(timeout_ms));
  zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
  zmq_connect(socket, (*publisher)->endpoint().c_str());
  std::atomic<bool> done = false;
  std::atomic<std::uint64_t> frames = 0;
  std::thread subscriber([&] {
    char buffer[1 << 16];
    while (!done) frames += zmq_recv(socket, buffer, sizeof(buffer), 0) >= 0;
  });
  (*publisher)->start("kv@bench@bench");
  report("published, with a subscriber", plan_steps(&(*publisher)->log()), without);
  done = true;
  subscriber.join();
  std::printf("\n%llu batches received, %llu overflows\n",
              static_cast<unsigned long long>(frames / 3),
              static_cast<unsigned long long>((*publisher)->log().overflows()));
  zmq_close(socket);
  zmq_ctx_term(context);
#else
  std::printf("this build has no ZeroMQ\n");
#endif
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace hearth

int main() { return hearth::run(); }
