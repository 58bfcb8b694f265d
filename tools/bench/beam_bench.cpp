#include "tools/bench/beam_bench.h"

#include <algorithm>
#include <random>
#include <vector>

#include <fmt/format.h>

namespace hearth {
namespace {

constexpr uint32_t kUntimedSteps = 2;  // after the prompt

GenerationRequest beam_bench_request(const Session& session, const ModelBenchOptions& options,
                                     uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<uint32_t> id(0, session.model().config().vocabulary - 1);
  GenerationRequest request{.max_tokens = options.tokens + kUntimedSteps, .ignore_end = true};
  request.sampling.temperature = 0;
  for (uint32_t i = 0; i < std::max(1u, options.context); ++i) request.prompt.push_back(id(random));
  return request;
}

// Tokens per second of the steps in which all sequences decode.
Result<double> decode_rate(Session& session, std::vector<GenerationRequest> requests,
                           uint32_t sequences) {
  Engine& engine = session.engine();
  const uint64_t first = engine.records().written();
  HEARTH_ASSIGN(std::vector<TokenStream> streams, engine.submit(std::move(requests)));
  for (TokenStream& stream : streams) {
    while (stream.next()) {
    }
    if (stream.end().reason == FinishReason::kError)
      return Error{ErrorKind::kInternal, stream.end().message};
  }
  double begin = 0, end = 0;
  uint64_t steps = 0;
  for (uint64_t i = first; i < engine.records().written(); ++i) {
    StepRecord record;
    if (!engine.records().read(i, record) || record.members.size() != sequences ||
        std::ranges::any_of(record.members, [](const StepMember& member) {
          return member.phase != StepPhase::kDecode;
        }))
      continue;
    if (steps++ == 0) begin = record.end_seconds;
    end = record.end_seconds;
  }
  if (steps < 2)
    return Error{ErrorKind::kInternal,
                 fmt::format("{} sequences never decoded together", sequences)};
  return static_cast<double>(steps - 1) * sequences / (end - begin);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

Result<BeamTime> time_beams(Session& session, const ModelBenchOptions& options, uint32_t beams) {
  std::vector<double> with_beams, streams;
  for (uint32_t run = 0; run <= options.repetitions; ++run) {
    GenerationRequest request = beam_bench_request(session, options, run);
    request.beam = {.beams = beams};
    HEARTH_ASSIGN(const double beam_rate, decode_rate(session, {request}, beams));
    std::vector<GenerationRequest> requests;
    for (uint32_t i = 0; i < beams; ++i)
      requests.push_back(beam_bench_request(session, options, run * beams + i));
    HEARTH_ASSIGN(const double stream_rate, decode_rate(session, std::move(requests), beams));
    if (run == 0) continue;  // kernels are compiled in it
    with_beams.push_back(beam_rate);
    streams.push_back(stream_rate);
  }
  return BeamTime{.beams = beams,
                  .beam_tokens_per_s = median(std::move(with_beams)),
                  .stream_tokens_per_s = median(std::move(streams))};
}

void print(const BeamTime& time) {
  fmt::print("{} beams: {:.1f} tokens/s; {} streams: {:.1f} tokens/s; ratio {:.3f}\n", time.beams,
             time.beam_tokens_per_s, time.beams, time.stream_tokens_per_s, time.ratio());
}

}  // namespace hearth
