#include "engine/active_request.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/model/step_executor.h"
#include "engine/sampling/sampler.h"
#include "engine/text/tokenizer.h"
#include "params/embed.h"

namespace hearth {
namespace {

static_assert(kMaxLogitBiases <= StepExecutor::kMaxBiases);
static_assert(kMaxTopLogprobs <= params::kMaxTopLogprobs);

Status check_ids(const GenerationRequest& request, uint32_t vocabulary) {
  // The device interprets ids with the bit kSampledId differently.
  const uint32_t ids = vocabulary != 0 ? vocabulary : params::kSampledId;
  for (const TokenId token : request.prompt)
    if (token >= ids)
      return invalid(fmt::format("token id {} is not in the vocabulary of {}", token, ids));
  return {};
}

// Sorts the biases by token, to find two for the same one: the kernel would add them concurrently.
Status check_biases(GenerationRequest& request) {
  if (request.biases.size() > kMaxLogitBiases)
    return invalid(fmt::format("{} logit biases are more than the {} a request may have",
                               request.biases.size(), kMaxLogitBiases));
  std::ranges::sort(request.biases, {}, &LogitBias::token);
  const auto twice = std::ranges::adjacent_find(request.biases, {}, &LogitBias::token);
  if (twice != request.biases.end())
    return invalid(fmt::format("token {} has two logit biases", twice->token));
  return {};
}

// A request without a limit of its own may fill the rest of the context and of the pool.
uint32_t most_new_tokens(const GenerationRequest& request, const SchedulerLimits& limits) {
  const uint64_t prompt = request.prompt.size();
  const uint64_t pool_tokens = uint64_t{limits.pool_blocks} * kTokensPerBlock;
  const uint64_t longest = std::min<uint64_t>(limits.context, pool_tokens);
  const uint32_t left = prompt < longest ? static_cast<uint32_t>(longest - prompt) : 1;
  return request.max_tokens == 0 ? left : std::min(request.max_tokens, left);
}

}  // namespace

Result<std::unique_ptr<ActiveRequest>> ActiveRequest::create(GenerationRequest request,
                                                             const Place& place) {
  HEARTH_TRY(check_ids(request, place.vocabulary));
  const uint32_t max_new = most_new_tokens(request, place.limits);
  if (const AddResult fit =
          check_request(place.limits, {.prompt = request.prompt, .max_new_tokens = max_new});
      !fit.accepted())
    return invalid(fit.message);
  HEARTH_TRY(check_biases(request));
  HEARTH_ASSIGN(const params::SamplingRow sampling, make_sampling_row(request.sampling, {}));
  return std::unique_ptr<ActiveRequest>(
      new ActiveRequest(std::move(request), place, sampling, max_new));
}

ActiveRequest::ActiveRequest(GenerationRequest request, const Place& place,
                             params::SamplingRow sampling, uint32_t max_new_tokens)
    : request_(std::move(request)),
      tokenizer_(place.tokenizer),
      sampling_(sampling),
      max_new_tokens_(max_new_tokens),
      channel_(std::make_shared<TokenChannel>(place.id, max_new_tokens)),
      submitted_(place.submitted),
      tokens_(request_.prompt),
      stop_(request_.stop),
      speculation_options_(place.speculation) {
  tokens_.reserve(tokens_.size() + max_new_tokens);
  if (tokenizer_ != nullptr) detokenizer_.emplace(*tokenizer_);
}

std::optional<EngineClock::time_point> ActiveRequest::deadline() const {
  constexpr double kLongest = 1e9;  // seconds; what the clock can certainly represent
  if (!(request_.time_limit_seconds > 0)) return std::nullopt;
  const std::chrono::duration<double> limit(std::min(request_.time_limit_seconds, kLongest));
  return submitted_ + std::chrono::duration_cast<EngineClock::duration>(limit);
}

bool ActiveRequest::uses_history() const {
  const SamplingOptions& options = request_.sampling;
  return options.repetition_penalty != 1.0f || options.presence_penalty != 0.0f ||
         options.frequency_penalty != 0.0f;
}

params::SamplingRow ActiveRequest::sampling_row(uint32_t slot, uint32_t position) const {
  params::SamplingRow row = sampling_;
  row.id_index = slot;
  // The random number depends on the seed and the number of generated tokens, never on the batch.
  row.counter = position - prompt_tokens();
  row.bias_offset = slot * StepExecutor::kMaxBiases;
  row.bias_count = static_cast<uint32_t>(request_.biases.size());
  row.history_slot = uses_history() ? slot : params::kNoHistory;
  return row;
}

void ActiveRequest::admit(EngineClock::time_point now) {
  if (admitted_) return;
  admitted_ = true;
  times_.admitted = since_submission(now);
  // Not earlier, because its tables are as large as the context, and many requests may wait.
  if (speculation_options_.method != SpeculationMethod::kNone)
    speculation_ = std::make_unique<Speculation>(
        speculation_options_, tokens_, static_cast<uint32_t>(tokens_.size()) + max_new_tokens_,
        request_.prediction);
}

void ActiveRequest::deliver(GeneratedToken token, EngineClock::time_point now) {
  const double time = since_submission(now);
  if (delivered_tokens_++ == 0)
    times_.first_token = time;
  else
    token_gap_ = time - times_.last_token;
  times_.last_token = time;
  channel_->push(std::move(token));
}

bool ActiveRequest::release_token(EngineClock::time_point now) {
  if (held_tokens_.empty()) {
    batch_ = 0;
    return false;
  }
  deliver(std::move(held_tokens_.front()), now);
  held_tokens_.pop_front();
  return true;
}

FinishReason ActiveRequest::accept(GeneratedToken token, EngineClock::time_point now) {
  tokens_.push_back(token.id);
  const bool is_end_token =
      tokenizer_ != nullptr && !request_.ignore_end && tokenizer_->ends_generation(token.id);
  if (detokenizer_ && !is_end_token) token.text = stop_.push(detokenizer_->push(token.id));
  if (held())
    held_tokens_.push_back(std::move(token));
  else
    deliver(std::move(token), now);

  if (is_end_token || stop_.found()) return FinishReason::kStop;
  if (generated_tokens() >= max_new_tokens_) return FinishReason::kLength;
  return FinishReason::kNone;
}

void ActiveRequest::finish(FinishReason reason, std::string message) {
  std::string rest;
  if (detokenizer_) {
    rest = stop_.push(detokenizer_->finish());
    rest += stop_.finish();
  }
  channel_->close({.reason = reason,
                   .message = std::move(message),
                   .text = std::move(rest),
                   .prompt_tokens = prompt_tokens(),
                   .cached_tokens = cached_tokens_,
                   .generated_tokens = generated_tokens(),
                   .proposed_tokens = proposed_tokens_,
                   .accepted_tokens = accepted_tokens_,
                   .times = times_});
}

}  // namespace hearth
