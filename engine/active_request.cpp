#include "engine/active_request.h"

#include <algorithm>
#include <utility>

#include "engine/model/step_executor.h"
#include "engine/text/tokenizer.h"

namespace hearth {

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kTimeLimit:
      return "time_limit";
    case FinishReason::kError:
      return "error";
  }
  return "none";
}

ActiveRequest::ActiveRequest(GenerationRequest request, const Tokenizer* tokenizer,
                             params::SamplingRow sampling, uint32_t max_new_tokens,
                             std::shared_ptr<TokenStream> stream, EngineClock::time_point submitted)
    : request_(std::move(request)),
      tokenizer_(tokenizer),
      sampling_(sampling),
      max_new_tokens_(max_new_tokens),
      stream_(std::move(stream)),
      submitted_(submitted),
      tokens_(request_.prompt),
      stop_(request_.stop) {
  tokens_.reserve(tokens_.size() + max_new_tokens);
  if (tokenizer != nullptr) detokenizer_.emplace(*tokenizer);
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
}

bool ActiveRequest::expired(EngineClock::time_point now) const {
  return request_.time_limit_seconds > 0 && since_submission(now) > request_.time_limit_seconds;
}

FinishReason ActiveRequest::accept(const params::SamplingResult& sampled,
                                   std::span<const params::TokenLogprob> top,
                                   EngineClock::time_point now) {
  const double time = since_submission(now);
  const bool first = generated_tokens() == 0;
  if (first)
    times_.first_token = time;
  else
    token_gap_ = time - times_.last_token;
  times_.last_token = time;
  tokens_.push_back(sampled.id);

  const bool is_end_token =
      tokenizer_ != nullptr && !request_.ignore_end && tokenizer_->ends_generation(sampled.id);
  GeneratedToken token{.id = sampled.id, .logprob = sampled.logprob};
  token.top.assign(top.begin(), top.end());
  if (detokenizer_ && !is_end_token) token.text = stop_.push(detokenizer_->push(sampled.id));
  stream_->push(std::move(token));

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
  stream_->close({.reason = reason,
                  .message = std::move(message),
                  .text = std::move(rest),
                  .prompt_tokens = prompt_tokens(),
                  .cached_tokens = cached_tokens_,
                  .generated_tokens = generated_tokens(),
                  .times = times_});
}

}  // namespace hearth
