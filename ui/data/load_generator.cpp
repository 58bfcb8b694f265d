#include "ui/data/load_generator.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "tools/replay/synthetic_trace.h"
#include "tools/replay/trace_reader.h"

namespace hearth {
namespace {

// Keeps frames short; the rest is submitted in the following ones.
constexpr size_t kMaxSubmitsPerFrame = 64;
constexpr size_t kMaxTraceRequests = 100'000;
constexpr uint64_t kTraceSeed = 1;             // the same as in `hearth replay`
constexpr uint32_t kFallbackVocabulary = 256;  // if the vocabulary is unknown

Result<Trace> read(const std::string& what, double speed) {
  if (!what.starts_with(kSyntheticScheme)) {
    // Reading a pipe or a device might never end.
    std::error_code error;
    if (!std::filesystem::is_regular_file(what, error))
      return Error{ErrorKind::kNotFound, fmt::format("no such file: '{}'", what)};
  }
  HEARTH_ASSIGN(Trace trace, read_trace(what, kMaxTraceRequests));
  if (speed > 0 && speed != 1) speed_up(trace, speed);
  return trace;
}

}  // namespace

void LoadGenerator::cancel_all() {
  stop();
  stop_trace();
  burst_ = 0;
  // Destroying a stream cancels its request.
  counts_.failed += streams_.size() + posted_.size();
  counts_.unanswered = 0;
  streams_.clear();
  for (const PostedRequest& posted : posted_) posted.call->cancel();
  posted_.clear();
}

void LoadGenerator::play_trace(const std::string& what, double speed) {
  stop_trace();
  requested_trace_ = RequestedTrace{what, speed};
}

void LoadGenerator::stop_trace() {
  trace_ = {};
  next_in_trace_ = 0;
  trace_started_.reset();
  trace_failure_.clear();
  requested_trace_.reset();
}

void LoadGenerator::reset_for(const LoadTarget& target) {
  generation_ = target.generation;
  // Requests from before the first engine was ready are kept for it.
  if (prompts_) cancel_all();
  counts_ = {};
  refusal_.clear();
  prompts_made_ = 0;
  random_ = SeededRandom(seed_);
  const uint32_t vocabulary =
      target.engine != nullptr ? target.engine->vocabulary() : target.remote_vocabulary;
  const std::vector<TokenId> ids =
      text_token_ids(target.tokenizer, vocabulary != 0 ? vocabulary : kFallbackVocabulary);
  prompts_ = std::make_unique<PromptMaker>(ids, seed_);
  trace_prompts_ = std::make_unique<PromptMaker>(ids, kTraceSeed);
}

void LoadGenerator::update(const LoadTarget& target, double now) {
  read_trace_file();
  if (target.engine == nullptr && target.remote == nullptr) {
    cancel_all();
    return;
  }
  if (!prompts_ || target.generation != generation_) reset_for(target);
  if (burst_ > 0) {
    std::vector<TraceRequest> requests;
    for (; burst_ > 0; --burst_) requests.push_back(random_request());
    submit(target, std::move(requests), false);
  }
  submit_due(target, now);
  play_due(target, now);
  drain_streams(target.shown);
}

TraceRequest LoadGenerator::random_request() {
  const auto between = [&](uint32_t a, uint32_t b) {
    return random_.between(std::max(std::min(a, b), 1u), std::max({a, b, 1u}));
  };
  TraceRequest request{
      .prompt_tokens = settings.shared_prefix + between(settings.prompt_min, settings.prompt_max),
      .generated_tokens = between(settings.generate_min, settings.generate_max)};
  if (settings.shared_prefix > 0) {
    request.prefix_ids = {0};
    request.tokens_per_prefix_id = settings.shared_prefix;
  }
  return request;
}

void LoadGenerator::submit_due(const LoadTarget& target, double now) {
  if (!started_ || settings.rate <= 0) {
    next_due_.reset();
    return;
  }
  // Exponential waiting times are memoryless, so a changed rate simply draws again.
  if (!next_due_ || settings.rate != last_rate_)
    next_due_ = now + random_.exponential(settings.rate);
  last_rate_ = settings.rate;
  for (size_t i = 0; i < kMaxSubmitsPerFrame && *next_due_ <= now; ++i) {
    *next_due_ += random_.exponential(settings.rate);
    submit(target, {random_request()}, false);
  }
  // Arrivals missed while the window was blocked are skipped.
  if (*next_due_ <= now) next_due_ = now;
}

void LoadGenerator::play_due(const LoadTarget& target, double now) {
  if (!playing_trace()) return;
  if (!trace_started_) trace_started_ = now;
  for (size_t i = 0; i < kMaxSubmitsPerFrame && playing_trace(); ++i) {
    const TraceRequest& request = trace_.requests[next_in_trace_];
    if (*trace_started_ + request.arrival_seconds > now) return;
    submit(target, {request}, true);
    ++next_in_trace_;
  }
}

// The requests are accepted or refused together.
void LoadGenerator::submit(const LoadTarget& target, std::vector<TraceRequest> requests,
                           bool of_trace) {
  const SchedulerLimits limits =
      target.engine != nullptr ? target.engine->limits() : target.remote_limits;
  const uint64_t pool_tokens = uint64_t{limits.pool_blocks} * kTokensPerBlock;
  const auto longest = static_cast<uint32_t>(std::min<uint64_t>(limits.context, pool_tokens));
  Trace fitting{.requests = std::move(requests)};
  clip_lengths(fitting, std::max(longest, 2u));
  std::vector<GenerationRequest> generations;
  for (const TraceRequest& request : fitting.requests) {
    GenerationRequest generation;
    generation.prompt = of_trace ? trace_prompts_->make(request, next_in_trace_)
                                 : prompts_->make(request, prompts_made_++);
    generation.max_tokens = request.generated_tokens;
    generation.ignore_end = true;
    if (!of_trace) generation.beam.beams = std::clamp(settings.beams, 1u, kMaxBeams);
    generations.push_back(std::move(generation));
  }
  if (target.engine == nullptr) {
    for (const GenerationRequest& generation : generations) post(*target.remote, generation);
    return;
  }
  const size_t count = generations.size();
  counts_.sent += count;
  Result<std::vector<TokenStream>> streams = target.engine->submit(std::move(generations));
  if (!streams.ok()) {
    counts_.refused += count;
    refusal_ = streams.error().message;
    return;
  }
  refusal_.clear();
  streams_.insert(streams_.end(), std::make_move_iterator(streams->begin()),
                  std::make_move_iterator(streams->end()));
}

void LoadGenerator::post(RemoteCalls& server, const GenerationRequest& generation) {
  nlohmann::json body = {
      {"prompt", generation.prompt}, {"max_tokens", generation.max_tokens}, {"ignore_eos", true}};
  if (generation.beam.searches()) body["beams"] = generation.beam.beams;
  posted_.push_back({server.post("/v1/completions", body.dump()), generation.max_tokens});
  ++counts_.sent;
}

void LoadGenerator::read_trace_file() {
  std::optional<ReadTrace> done = reading_.take();
  if (!reading_.busy() && requested_trace_ && (!done || done->requested != *requested_trace_))
    reading_.start([requested = *requested_trace_] {
      return ReadTrace{requested, read(requested.what, requested.speed)};
    });
  // The user may have picked another trace meanwhile.
  if (!done || !requested_trace_ || done->requested != *requested_trace_) return;
  requested_trace_.reset();
  if (!done->trace.ok()) {
    trace_failure_ = done->trace.error().message;
    return;
  }
  trace_ = std::move(*done->trace);
  if (trace_.requests.empty()) trace_failure_ = "the trace has no requests";
}

void LoadGenerator::drain_streams(std::span<const SequenceView> shown) {
  for (TokenStream& stream : streams_)
    while (stream.next(std::chrono::nanoseconds(0))) ++counts_.tokens;
  std::erase_if(streams_, [&](const TokenStream& stream) {
    if (!stream.ended()) return false;
    if (std::ranges::find(shown, stream.request(), &SequenceView::id) != shown.end()) return false;
    ++(stream.end().reason == FinishReason::kLength ? counts_.answered : counts_.failed);
    return true;
  });
  std::erase_if(posted_, [&](const PostedRequest& posted) {
    if (!posted.call->ended()) return false;
    refusal_ = posted.call->failure();
    ++(refusal_.empty() ? counts_.answered : counts_.failed);
    if (refusal_.empty()) counts_.tokens += posted.tokens;
    return true;
  });
  counts_.unanswered = streams_.size() + posted_.size();
}

}  // namespace hearth
