// What measured and simulated replays have in common: the requests they submit, and how a finished
// replay becomes a ReplayRun.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/decoding/beam_options.h"
#include "engine/engine.h"
#include "runtime/result.h"
#include "tools/replay/record_cursor.h"
#include "tools/replay/replay_report.h"
#include "tools/replay/step_tally.h"
#include "tools/replay/trace.h"

namespace hearth {

struct ReplayInput {
  const Trace& trace;                               // lengths fit the engine's context
  std::span<const std::vector<TokenId>> prompts;    // one per request
  std::function<void(double begin_seconds)> begin;  // called before the first request; may be empty
  StepSink step;                                    // may be empty
  float temperature = 0;                            // of every request; 0: greedy
  BeamOptions beam = {};                            // of every request
};

// In the trace's order; empty for a request that was refused. A deque: a stream can be read while
// others are added.
using ReplayStreams = std::deque<std::optional<TokenStream>>;

// Request `index` of the trace. It continues after the model says it is done, so that its length is
// the trace's.
GenerationRequest replay_request(const ReplayInput& input, size_t index);
// Requests from `first` on that have arrived by `now` seconds after the replay began.
std::vector<GenerationRequest> requests_due(const ReplayInput& input, size_t first, double now);

// Submits the requests of the trace that are due and adds their streams. Requests that are due at
// the same time are submitted together, unless some of them are refused because the queue is full
// or too slow. Any other refusal is an error.
Status submit_due(Engine& engine, const ReplayInput& input, double now, ReplayStreams& streams);

// Takes `tally` apart. REQUIRES: every request of the trace was submitted and has ended, and every
// record was read.
Result<ReplayRun> collect_run(const Engine& engine, const Trace& trace, double begin,
                              ReplayStreams& streams, StepTally& tally);

}  // namespace hearth
