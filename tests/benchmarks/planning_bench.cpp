// How long planning a step takes on the host: 256 running requests, 1,000 waiting. The engine plans
// while the GPU runs, so what matters is that it stays far below a step.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "engine/scheduling/scheduler.h"

namespace hearth {
namespace {

constexpr std::uint32_t kRunning = 256, kWaiting = 1000, kSteps = 2000;

struct Case {
  const char* name;
  std::uint32_t prompt_tokens, max_new_tokens;
  std::uint32_t ends_at;   // every N steps a request ends and another is added; 0: never
  std::uint32_t proposed;  // tokens proposed for every request before each step; all are rejected
};

// Microseconds per call, sorted.
std::vector<double> measure(const Case& c) {
  Scheduler scheduler({.max_sequences = kRunning,
                       .max_step_tokens = kRunning * 16,
                       .context = c.prompt_tokens + c.max_new_tokens,
                       .pool_blocks = 200'000,
                       .max_queue = kRunning + kWaiting},
                      *named_policy("continuous"));
  RequestId next = 1;
  const auto add = [&] {
    std::vector<TokenId> prompt(c.prompt_tokens);
    for (std::size_t i = 0; i < prompt.size(); ++i)
      prompt[i] = static_cast<TokenId>(next * 7919 + i * 31);
    scheduler.add(next++, {.prompt = prompt, .max_new_tokens = c.max_new_tokens});
  };
  for (std::uint32_t i = 0; i < kRunning + kWaiting; ++i) add();

  std::vector<double> times;
  std::vector<RequestId> sampled, before;
  const std::vector<TokenId> guesses(c.proposed, 1);
  std::uint32_t steps = 0;
  while (times.size() < kSteps) {
    const auto begin = std::chrono::steady_clock::now();
    const BatchPlan& plan = scheduler.plan();
    const auto planned = std::chrono::steady_clock::now();
    const bool steady = plan.members.size() == kRunning;
    double micros = std::chrono::duration<double, std::micro>(planned - begin).count();
    std::swap(sampled, before);
    sampled.clear();
    for (const BatchMember& member : plan.members)
      if (member.samples) sampled.push_back(member.request);
    if (c.proposed > 0) {
      // Judging an outcome and proposing anew count as planning, too.
      const auto judging = std::chrono::steady_clock::now();
      for (RequestId id : sampled) {
        const TokenLedger& ledger = *scheduler.ledger(id);
        if (ledger.awaiting()) {
          scheduler.commit(id, 0);
          scheduler.truncate(id, ledger.committed());
        }
        scheduler.token(id, static_cast<TokenId>(steps));
        scheduler.propose(id, guesses);
      }
      const auto judged = std::chrono::steady_clock::now();
      micros += std::chrono::duration<double, std::micro>(judged - judging).count();
    } else {
      for (RequestId id : before) scheduler.token(id, static_cast<TokenId>(steps));
    }
    if (steady) times.push_back(micros);
    if (steady && c.ends_at != 0 && ++steps % c.ends_at == 0) {
      scheduler.finish(plan.members.front().request);
      add();
    }
  }
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace
}  // namespace hearth

int main() {
  const hearth::Case cases[] = {
      {"decodes, contexts 128 to 2,128", 128, 2400, 0, 0},
      {"decodes, contexts 4,096 to 6,096", 4096, 2400, 0, 0},
      {"a request ends and one comes at every step", 512, 2400, 1, 0},
      {"8 proposed tokens per request, judged and planned", 128, 2400, 0, 8},
  };
  std::printf("plan() for %u running and %u waiting requests, microseconds:\n", hearth::kRunning,
              hearth::kWaiting);
  for (const hearth::Case& c : cases) {
    const auto times = hearth::measure(c);
    std::printf("  %-50s median %6.1f  p99 %6.1f\n", c.name, times[times.size() / 2],
                times[times.size() * 99 / 100]);
  }
}
