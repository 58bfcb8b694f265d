// Sends the requests of a trace to a server and measures the replies. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/http/http_transfers.h"
#include "tools/load/load_prompt.h"
#include "tools/load/load_target.h"
#include "tools/replay/request_timing.h"
#include "tools/replay/trace.h"

namespace hearth {

struct LoadRunSettings {
  // Closed loop: the number of clients, each of which sends its next request when its last one has
  // been answered. 0: open loop, in which requests are sent when the trace says.
  uint32_t clients = 0;
  uint32_t retries = 5;          // of a request that gets 429 or 503
  double timeout_seconds = 600;  // per request and attempt
  uint64_t prompt_seed = 1;
};

// The outcome of one request.
struct LoadedRequest {
  enum class State : uint8_t {
    kUnfinished,  // the load was interrupted before it ended, or before it was sent
    kCompleted,
    kRefused,  // with 429 or 503, more often than it is retried
    kFailed,
  };
  State state = State::kUnfinished;
  // From when it was due; in a closed loop, from when a client was free. Its token times are those
  // of chunks with text, which may have several tokens.
  RequestTiming timing;
  double end = 0;  // when its last byte came
  uint64_t prompt_tokens = 0, tokens = 0;
  bool server_counted = false;  // the tokens; otherwise they are chunks and the trace's length
  uint32_t refusals = 0;        // replies with 429 or 503
  std::string error;            // the kind of failure, in a few words
  std::string error_detail;     // what the server or the system said about it
};

struct LoadRun {
  std::vector<LoadedRequest> requests;  // in the trace's order; times in seconds since the start
  double end = 0;                       // when the last one ended, or the load was interrupted
  bool interrupted = false;
};

struct LoadWatch {
  std::function<bool()> go_on;                      // asked ten times per second; false interrupts
  std::function<void(const LoadedRequest&)> ended;  // called for each request that is over
};

LoadRun run_load(HttpTransfers& transfers, const LoadedServer& target, const Trace& trace,
                 const LoadRunSettings& settings, const LoadWatch& watch = {});

}  // namespace hearth
