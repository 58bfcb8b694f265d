#include "ui/data/load_generator.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "tools/replay/synthetic_trace.h"
#include "tools/replay/trace_reader.h"

namespace hearth {
namespace {

// In one frame, so that a frame stays short; what is left comes in the next ones.
constexpr size_t kMostAtOnce = 64;
constexpr size_t kMostOfTrace = 100'000;
constexpr uint64_t kTraceSeed = 1;     // as hearth replay
constexpr uint32_t kSomeTokens = 256;  // where the vocabulary is not known

Result<Trace> read(const std::string& what, double speed) {
  if (!what.starts_with(kSyntheticScheme)) {
    // Pipes and devices would never end.
    std::error_code error;
    if (!std::filesystem::is_regular_file(what, error))
      return Error{ErrorKind::kNotFound, fmt::format("there is no file '{}'", what)};
  }
  HEARTH_ASSIGN(Trace trace, read_trace(what, kMostOfTrace));
  if (speed > 0 && speed != 1) speed_up(trace, speed);
  return trace;
}

}  // namespace

void LoadGenerator::cancel_all() {
  stop();
  stop_trace();
  burst_ = 0;
  // Letting go of a stream cancels its request.
  counts_.failed += streams_.size();
  counts_.running = 0;
  streams_.clear();
}

void LoadGenerator::play_trace(const std::string& what, double speed) {
  stop_trace();
  wanted_ = WantedTrace{what, speed};
}

void LoadGenerator::stop_trace() {
  trace_ = {};
  next_in_trace_ = 0;
  trace_begin_.reset();
  trace_failure_.clear();
  wanted_.reset();
}

void LoadGenerator::begin_anew(const LoadTarget& target) {
  generation_ = target.generation;
  // What was asked for before there was any engine is for the first one.
  if (prompts_) cancel_all();
  counts_ = {};
  refusal_.clear();
  made_ = 0;
  random_ = SeededRandom(seed_);
  const uint32_t known = target.engine->vocabulary();
  const std::vector<TokenId> ids =
      text_token_ids(target.tokenizer, known != 0 ? known : kSomeTokens);
  prompts_ = std::make_unique<PromptMaker>(ids, seed_);
  trace_prompts_ = std::make_unique<PromptMaker>(ids, kTraceSeed);
}

void LoadGenerator::update(const LoadTarget& target, double now) {
  read_trace_file();
  if (target.engine == nullptr) {
    cancel_all();
    return;
  }
  if (!prompts_ || target.generation != generation_) begin_anew(target);
  if (burst_ > 0) {
    std::vector<TraceRequest> requests;
    for (; burst_ > 0; --burst_) requests.push_back(draw());
    submit(*target.engine, std::move(requests), false);
  }
  submit_due(*target.engine, now);
  play_due(*target.engine, now);
  take_tokens();
}

TraceRequest LoadGenerator::draw() {
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

void LoadGenerator::submit_due(Engine& engine, double now) {
  if (!started_ || settings.rate <= 0) {
    next_.reset();
    return;
  }
  // Waiting times have no memory: at another rate they are drawn anew.
  if (!next_ || settings.rate != last_rate_) next_ = now + random_.exponential(settings.rate);
  last_rate_ = settings.rate;
  for (size_t i = 0; i < kMostAtOnce && *next_ <= now; ++i) {
    *next_ += random_.exponential(settings.rate);
    submit(engine, {draw()}, false);
  }
  // What a window that stood still has missed is not made up for.
  if (*next_ <= now) next_ = now;
}

void LoadGenerator::play_due(Engine& engine, double now) {
  if (!playing_trace()) return;
  if (!trace_begin_) trace_begin_ = now;
  for (size_t i = 0; i < kMostAtOnce && playing_trace(); ++i) {
    const TraceRequest& request = trace_.requests[next_in_trace_];
    if (*trace_begin_ + request.arrival_seconds > now) return;
    submit(engine, {request}, true);
    ++next_in_trace_;
  }
}

// Together, or none of them.
void LoadGenerator::submit(Engine& engine, std::vector<TraceRequest> requests, bool of_trace) {
  const SchedulerLimits limits = engine.limits();
  const uint64_t pool_tokens = uint64_t{limits.pool_blocks} * kTokensPerBlock;
  const auto longest = static_cast<uint32_t>(std::min<uint64_t>(limits.context, pool_tokens));
  Trace fitting{.requests = std::move(requests)};
  clip_lengths(fitting, std::max(longest, 2u));
  std::vector<GenerationRequest> made;
  for (const TraceRequest& request : fitting.requests) {
    GenerationRequest generation;
    generation.prompt =
        of_trace ? trace_prompts_->make(request, next_in_trace_) : prompts_->make(request, made_++);
    generation.max_tokens = request.generated_tokens;
    generation.ignore_end = true;
    made.push_back(std::move(generation));
  }
  const size_t count = made.size();
  Result<std::vector<std::shared_ptr<TokenStream>>> streams = engine.submit(std::move(made));
  if (!streams.ok()) {
    counts_.refused += count;
    refusal_ = streams.error().message;
    return;
  }
  refusal_.clear();
  counts_.submitted += count;
  streams_.insert(streams_.end(), streams->begin(), streams->end());
}

void LoadGenerator::read_trace_file() {
  std::optional<ReadTrace> done = reading_.take();
  if (!reading_.busy() && wanted_ && (!done || done->wanted != *wanted_))
    reading_.start([wanted = *wanted_] {
      return ReadTrace{wanted, read(wanted.what, wanted.speed)};
    });
  // Somebody may have changed his mind meanwhile.
  if (!done || !wanted_ || done->wanted != *wanted_) return;
  wanted_.reset();
  if (!done->trace.ok()) {
    trace_failure_ = done->trace.error().message;
    return;
  }
  trace_ = std::move(*done->trace);
  if (trace_.requests.empty()) trace_failure_ = "the trace has no requests";
}

void LoadGenerator::take_tokens() {
  std::erase_if(streams_, [&](const std::shared_ptr<TokenStream>& stream) {
    while (stream->next(std::chrono::nanoseconds(0))) ++counts_.tokens;
    if (!stream->ended()) return false;
    ++(stream->end().reason == FinishReason::kLength ? counts_.ended : counts_.failed);
    return true;
  });
  counts_.running = streams_.size();
}

}  // namespace hearth
