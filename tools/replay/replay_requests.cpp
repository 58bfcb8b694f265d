#include "tools/replay/replay_requests.h"

#include <optional>
#include <utility>

namespace hearth {
namespace {

// Reads what is left of the stream; in a simulation nothing is.
ReplayAnswer read_answer(TokenStream& stream) {
  ReplayAnswer answer;
  while (const std::optional<GeneratedToken> token = stream.next()) {
    answer.text += token->text;
    answer.logprob += token->logprob;
  }
  answer.text += stream.end().text;
  return answer;
}

}  // namespace

GenerationRequest replay_request(const ReplayInput& input, size_t index) {
  GenerationRequest request{.prompt = input.prompts[index]};
  request.sampling.temperature = input.temperature;
  request.sampling.seed = index + 1;
  request.beam = input.beam;
  request.max_tokens = input.trace.requests[index].generated_tokens;
  request.ignore_end = true;
  return request;
}

std::vector<GenerationRequest> requests_due(const ReplayInput& input, size_t first, double now) {
  const std::vector<TraceRequest>& requests = input.trace.requests;
  std::vector<GenerationRequest> due;
  for (size_t i = first; i < requests.size() && requests[i].arrival_seconds <= now; ++i)
    due.push_back(replay_request(input, i));
  return due;
}

Status submit_due(Engine& engine, const ReplayInput& input, double now, ReplayStreams& streams) {
  const size_t first = streams.size();
  std::vector<GenerationRequest> due = requests_due(input, first, now);
  const size_t count = due.size();
  if (count == 0) return {};
  Result<std::vector<TokenStream>> accepted = engine.submit(std::move(due));
  if (accepted.ok()) {
    for (TokenStream& stream : *accepted) streams.emplace_back(std::move(stream));
    return {};
  }
  for (size_t i = first; i < first + count; ++i) {
    if (accepted.error().kind != ErrorKind::kBusy) return accepted.error();
    Result<TokenStream> one = engine.submit(replay_request(input, i));
    if (one.ok())
      streams.emplace_back(std::move(one).value());
    else if (one.error().kind == ErrorKind::kBusy)
      streams.emplace_back();
    else
      return one.error();
  }
  return {};
}

Result<ReplayRun> collect_run(const Engine& engine, const Trace& trace, double begin,
                              ReplayStreams& streams, StepTally& tally) {
  if (engine.state() == EngineState::kFailed)
    return Error{ErrorKind::kDeviceLost, engine.failure()};
  const SchedulerLimits limits = engine.limits();
  ReplayRun run;
  run.begin = begin;
  run.max_sequences = limits.max_sequences;
  run.pool_blocks = limits.pool_blocks;
  run.query_tokens = engine.metrics().prefix_query_tokens.value();
  run.hit_tokens = engine.metrics().prefix_hit_tokens.value();
  run.steps = tally.use();
  const bool with_batch = engine.policy().delivery == Delivery::kWithBatch;
  for (size_t i = 0; i < streams.size(); ++i) {
    const double arrival = begin + trace.requests[i].arrival_seconds;
    if (!streams[i]) {
      run.requests.push_back({.arrival = arrival, .token_times = {}, .refused = true});
      run.answers.emplace_back();
      run.cached_tokens.push_back(0);
      continue;
    }
    run.answers.push_back(read_answer(*streams[i]));
    const GenerationEnd& end = streams[i]->end();
    RequestTiming timing{.arrival = arrival,
                         .token_times = tally.take_token_times(streams[i]->request())};
    // A step that was in flight when the request ended sampled one token too many.
    if (timing.token_times.size() > end.generated_tokens)
      timing.token_times.resize(end.generated_tokens);
    run.untimed_tokens += end.generated_tokens - timing.token_times.size();
    run.proposed_tokens += end.proposed_tokens;
    run.accepted_tokens += end.accepted_tokens;
    // The engine delivers the tokens of a batch, and ends its requests, when the last member is
    // done.
    if (with_batch && !timing.token_times.empty())
      timing.deliver_together(tally.submit_time(streams[i]->request()) + end.times.finished);
    timing.failed = end.reason != FinishReason::kLength;
    run.prompt_tokens += end.prompt_tokens;
    run.cached_tokens.push_back(end.cached_tokens);
    run.requests.push_back(std::move(timing));
  }
  return run;
}

}  // namespace hearth
