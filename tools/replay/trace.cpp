#include "tools/replay/trace.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/replay/seeded_random.h"

namespace hearth {
namespace {

uint32_t scaled(uint32_t length, double factor) {
  constexpr double kMost = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::clamp(std::round(length * factor), 1.0, kMost));
}

}  // namespace

uint32_t TraceRequest::section_begin(size_t index) const {
  const double begin = std::floor(static_cast<double>(index) * tokens_per_prefix_id);
  return static_cast<uint32_t>(std::min<double>(begin, prompt_tokens));
}

uint64_t Trace::prompt_tokens() const {
  uint64_t sum = 0;
  for (const TraceRequest& request : requests) sum += request.prompt_tokens;
  return sum;
}

uint64_t Trace::generated_tokens() const {
  uint64_t sum = 0;
  for (const TraceRequest& request : requests) sum += request.generated_tokens;
  return sum;
}

void scale_lengths(Trace& trace, double factor) {
  for (TraceRequest& request : trace.requests) {
    request.prompt_tokens = scaled(request.prompt_tokens, factor);
    request.generated_tokens = scaled(request.generated_tokens, factor);
    request.tokens_per_prefix_id *= factor;
  }
}

void speed_up(Trace& trace, double factor) {
  for (TraceRequest& request : trace.requests)
    request.arrival_seconds = std::min(request.arrival_seconds / factor, kLatestArrivalSeconds);
}

void arrive_at_once(Trace& trace) {
  for (TraceRequest& request : trace.requests) request.arrival_seconds = 0;
}

void arrive_at_rate(Trace& trace, double rate, uint64_t seed) {
  SeededRandom random(seed);
  double time = 0;
  for (TraceRequest& request : trace.requests) {
    request.arrival_seconds = std::min(time, kLatestArrivalSeconds);
    time += random.exponential(rate);
  }
}

size_t clip_lengths(Trace& trace, uint32_t context) {
  size_t clipped = 0;
  const uint32_t half = context / 2;
  for (TraceRequest& request : trace.requests) {
    uint32_t& prompt = request.prompt_tokens;
    uint32_t& generated = request.generated_tokens;
    if (uint64_t{prompt} + generated <= context) continue;
    ++clipped;
    if (generated <= half) {
      prompt = context - generated;
    } else if (prompt <= half) {
      generated = context - prompt;
    } else {
      prompt = context - half;
      generated = half;
    }
  }
  return clipped;
}

}  // namespace hearth
