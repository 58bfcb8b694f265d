// Request traces in all the forms that `hearth replay` reads: any text ends in a trace that can be
// replayed, or in an error.
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "tests/fuzz/fuzz.h"
#include "tools/replay/synthetic_trace.h"
#include "tools/replay/trace_reader.h"

namespace hearth {

std::vector<std::string> fuzz::seeds() {
  return {
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\r\n"
      "2023-11-16 18:15:50,1,16000000\n",
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,10,5\n\n"
      "2024-05-10 00:00:01Z,10,5\n2024-05-10 02:00:02-02:00,10,5",
      R"({"timestamp": 500, "input_length": 1025, "output_length": 6, "hash_ids": [0, 1, 2]})"
      "\n"
      R"({"timestamp": 540, "input_length": 600, "output_length": 4, "hash_ids": [0, 9]})",
      "{\"timestamp\":0,\"input_length\":1,\"output_length\":1,\"hash_ids\":[]}\n",
      "synthetic:rate=4,n=100,prompt=16..120,gen=8..96,prefix=192,seed=1",
      "synthetic:rate=inf,n=3,prompt=7,gen=1e3",
      "synthetic:n=9,prompt=16..3000~540,gen=8..500~134",
      "synthetic:",
  };
}

namespace {

constexpr size_t kMostRequests = 1000;  // "synthetic:n=10000000" would only take time

void check_request(const TraceRequest& request) {
  if (!(request.arrival_seconds >= 0 && request.arrival_seconds <= kLatestArrivalSeconds))
    std::abort();
  if (request.prompt_tokens < 1 || request.generated_tokens < 1) std::abort();
  for (size_t i = 0; i <= request.prefix_ids.size(); ++i)
    if (request.section_begin(i) > request.prompt_tokens) std::abort();
}

void check_trace(const Trace& trace) {
  if (trace.requests.empty() || trace.requests.size() > kMostRequests) std::abort();
  if (!std::ranges::is_sorted(trace.requests, {}, &TraceRequest::arrival_seconds)) std::abort();
  std::ranges::for_each(trace.requests, check_request);
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth;
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::istringstream stream(text);
  Result<Trace> trace = text.starts_with(kSyntheticScheme)
                            ? read_trace(text, kMostRequests)
                            : read_trace(stream, "fuzz", kMostRequests);
  if (!trace.ok()) {
    if (trace.error().message.empty()) std::abort();
    return 0;
  }
  check_trace(*trace);
  scale_lengths(*trace, 0.3);
  speed_up(*trace, 1e-9);
  check_trace(*trace);
  clip_lengths(*trace, 64);
  for (const TraceRequest& request : trace->requests)
    if (request.prompt_tokens + request.generated_tokens > 64) std::abort();
  return 0;
}
