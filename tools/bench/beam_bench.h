// How fast beam search decodes, compared with as many independent streams.
#pragma once

#include <cstdint>

#include "engine/session.h"
#include "runtime/result.h"
#include "tools/bench/model_bench.h"

namespace hearth {

struct BeamTime {
  uint32_t beams = 0;
  double beam_tokens_per_s = 0, stream_tokens_per_s = 0;  // medians over the repetitions
  double ratio() const { return beam_tokens_per_s / stream_tokens_per_s; }
};

// Runs both in turn, in the same session, from the end of one step to the end of another. REQUIRES:
// the session was opened with bench_session_options() for a batch of `beams`.
Result<BeamTime> time_beams(Session& session, const ModelBenchOptions& options, uint32_t beams);

void print(const BeamTime& time);

}  // namespace hearth
