#include "engine/active_request.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "engine/beam_group.h"
#include "engine/contrastive_request.h"
#include "engine/guidance.h"
#include "engine/model/step_executor.h"
#include "engine/sampling/sampler.h"
#include "engine/sampling/stages.h"
#include "engine/text/tokenizer.h"
#include "params/embed.h"

namespace hearth {
namespace {

static_assert(kMaxLogitBiases <= StepExecutor::kMaxBiases);
static_assert(kMaxTopLogprobs <= params::kMaxTopLogprobs);

Status check_ids(const GenerationRequest& request, uint32_t vocabulary) {
  // The device interprets ids with the bit kSampledId differently.
  const uint32_t ids = vocabulary != 0 ? vocabulary : params::kSampledId;
  for (const std::vector<TokenId>* tokens : {&request.prompt, &request.guidance.negative_prompt})
    for (const TokenId token : *tokens)
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

Status check_banned_strings(const GenerationRequest& request, const Tokenizer* tokenizer) {
  if (request.banned_strings.empty()) return {};
  if (tokenizer == nullptr) return invalid("banned strings need a model with a vocabulary");
  if (request.grammar != nullptr)
    return invalid(
        "banned strings and a grammar cannot be combined; let the grammar leave them out");
  if (request.banned_strings.size() > kMaxBannedStrings)
    return invalid(fmt::format("{} banned strings are more than the {} a request may have",
                               request.banned_strings.size(), kMaxBannedStrings));
  if (uses_mirostat(request.sampling))
    return invalid("banned strings and mirostat cannot be combined");
  if (std::ranges::any_of(request.banned_strings, &std::string::empty))
    return invalid("a banned string is empty");
  constexpr size_t kMost = kMaxLogitBiases - BanGuard::kMostBansPerPlace;
  if (request.biases.size() > kMost)
    return invalid(fmt::format("banned strings leave room for {} logit biases, not {}", kMost,
                               request.biases.size()));
  return {};
}

// Turns the row into one that is mixed with the amateur's logits, if the request wants that.
Status mix_with_amateur(const GenerationRequest& request,
                        const std::optional<ContrastOptions>& settings, params::SamplingRow& row) {
  if (!settings) {
    if (request.contrast_beta.value_or(0) == 0 && !request.contrast_alpha) return {};
    return invalid("contrastive decoding needs an amateur model (--amateur)");
  }
  const float alpha = request.contrast_alpha.value_or(settings->alpha);
  const float beta = request.contrast_beta.value_or(settings->beta);
  if (!(alpha >= 0 && alpha <= 1))
    return invalid("alpha of contrastive decoding must be between 0 and 1");
  if (!(beta >= 0 && beta <= 100))
    return invalid("beta of contrastive decoding must be between 0 and 100");
  if (beta == 0) return {};
  return mix_logits(
      row, {.other_model = true, .own_weight = 1, .other_weight = -beta, .plausible = alpha});
}

// What DRY compares breakers with. Without a tokenizer there is no text, and nothing breaks.
TokenText token_text(const Tokenizer* tokenizer) {
  return [tokenizer](uint32_t token) -> std::optional<std::string> {
    if (tokenizer == nullptr) return std::string();
    if (tokenizer->is_control(token)) return std::nullopt;
    return tokenizer->piece(token);
  };
}

// A request without a limit of its own may fill the rest of the context and of the pool.
uint32_t most_new_tokens(const GenerationRequest& request, const SchedulerLimits& limits) {
  if (!request.generate) return 1;  // which is not delivered
  const uint64_t prompt = std::max(request.prompt.size(), negative_tokens(request));
  const uint32_t candidates = most_candidates(request);
  // Each candidate has a block of its own; the first one's is the text's.
  const uint32_t more_blocks = std::min(limits.pool_blocks, candidates > 0 ? candidates - 1 : 0);
  const uint64_t longest = std::min<uint64_t>(
      limits.context, longest_in_blocks(request, limits.pool_blocks - more_blocks));
  const uint64_t taken = prompt + candidates;
  const uint32_t left = taken < longest ? static_cast<uint32_t>(longest - taken) : 1;
  return request.max_tokens == 0 ? left : std::min(request.max_tokens, left);
}

GrammarTrigger::Options trigger_of(const GenerationRequest& request) {
  const GenerationRequest::Reasoning& reasoning = request.grammar_reasoning;
  return {.text = request.grammar_after,
          .opens_text = request.grammar_opens_text,
          .tag = request.grammar_tag,
          .reasoning_open = reasoning.open,
          .reasoning_close = reasoning.close,
          .in_reasoning = reasoning.begun};
}

// The first mask is computed here, on the thread that submits the request.
Result<std::shared_ptr<Constraint>> constrain(const GenerationRequest& request,
                                              const ActiveRequest::Place& place) {
  if (place.tokenizer == nullptr || place.trie == nullptr)
    return invalid("a grammar needs a model with a vocabulary");
  auto constraint =
      std::make_shared<Constraint>(Constraint::Options{.grammar = request.grammar,
                                                       .trie = place.trie,
                                                       .tokenizer = place.tokenizer,
                                                       .vocabulary = place.vocabulary,
                                                       .ignore_end = request.ignore_end,
                                                       .forces = !request.beam.searches(),
                                                       .after = trigger_of(request)});
  if (constraint->fault()) return unsupported(*constraint->fault());
  return constraint;
}

}  // namespace

Result<std::unique_ptr<ActiveRequest>> ActiveRequest::create(GenerationRequest request,
                                                             const Place& place) {
  if (request.pooling != Pooling::kNone) {
    // The token that every prompt ends with says that its last step is done.
    request.max_tokens = 1;
    request.ignore_end = true;
    request.cache_salt = ~uint64_t{place.id};  // shared with no other request
  }
  HEARTH_TRY(check_ids(request, place.vocabulary));
  HEARTH_TRY(complete_guidance(request, place.contrast));
  const uint32_t max_new = most_new_tokens(request, place.limits);
  if (const AddResult fit =
          check_request(place.limits, {.prompt = request.prompt,
                                       .max_new_tokens = max_new + most_candidates(request),
                                       .seats = std::max(request.beam.beams, 1u),
                                       .shadow_prompt = request.guidance.negative_prompt,
                                       .candidates = most_candidates(request)});
      !fit.accepted())
    return invalid(fit.message);
  HEARTH_TRY(check_biases(request));
  HEARTH_TRY(check_banned_strings(request, place.tokenizer));
  if (request.dry_breakers.size() > kMaxDryBreakers)
    return invalid(fmt::format("{} sequence breakers are more than the {} a request may have",
                               request.dry_breakers.size(), kMaxDryBreakers));
  request.sampling = only_listed(request.sampling);
  SamplingOptions options = request.sampling;
  if (request.beam.searches()) {
    HEARTH_ASSIGN(options, beam_sampling(request, place.tokenizer));
    request.sampling = {.temperature = 0, .top_logprobs = request.sampling.top_logprobs};
  }
  if (request.contrastive_search.searches()) {
    if (!place.keeps_hidden)
      return invalid("contrastive search is not available with several devices");
    HEARTH_ASSIGN(options, contrastive_sampling(request, place.contrast));
    const SamplingOptions asked = request.sampling;
    request.sampling = options;
    request.sampling.top_logprobs = asked.top_logprobs;
  }
  HEARTH_ASSIGN(params::SamplingRow sampling, make_sampling_row(options, {}));
  if (request.guidance.guides())
    HEARTH_TRY(guide(request.guidance, sampling));
  else if (!request.contrastive_search.searches())
    HEARTH_TRY(mix_with_amateur(request, place.contrast, sampling));
  std::shared_ptr<Constraint> constraint;
  if (request.grammar != nullptr && request.generate) {
    HEARTH_ASSIGN(constraint, constrain(request, place));
  }
  std::unique_ptr<ActiveRequest> made(
      new ActiveRequest(std::move(request), place, sampling, max_new));
  made->constraint_ = std::move(constraint);
  return made;
}

ActiveRequest::ActiveRequest(GenerationRequest request, const Place& place,
                             params::SamplingRow sampling, uint32_t max_new_tokens)
    : request_(std::move(request)),
      tokenizer_(place.tokenizer),
      sampling_(sampling),
      samplers_(request_.sampling, request_.dry_breakers, token_text(place.tokenizer),
                request_.prompt, StepExecutor::kMaxDryTokens),
      max_new_tokens_(max_new_tokens),
      channel_(std::make_shared<TokenChannel>(place.id, max_new_tokens)),
      submitted_(place.submitted),
      tokens_(request_.prompt),
      stop_(request_.stop),
      speculation_options_(place.speculation),
      // A request with a salt of its own must share nothing.
      outputs_(request_.cache_salt == 0 ? place.outputs : nullptr) {
  tokens_.reserve(tokens_.size() + max_new_tokens);
  if (tokenizer_ != nullptr) detokenizer_.emplace(*tokenizer_, true, false, request_.shown_tokens);
  if (!request_.banned_strings.empty())
    bans_ =
        std::make_unique<BanGuard>(request_.banned_strings, *detokenizer_, stop_, max_new_tokens);
  if (request_.pooling != Pooling::kNone) {
    pooling_ = std::make_unique<PoolingState>(request_.pooling, prompt_tokens());
    speculation_options_ = {};
  }
  if (request_.contrastive_search.searches())
    contrastive_ = std::make_unique<ContrastiveSearch>(request_.contrastive_search);
  if (request_.beam.searches() || request_.guidance.guides() || contrastive_ != nullptr)
    speculation_options_.method = SpeculationMethod::kNone;
}

bool ActiveRequest::hidden() const { return beams_ != nullptr && !beams_->is_returned(id()); }

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
  // Random numbers depend on the seed and the number of generated tokens, never on the batch.
  row.counter = position - prompt_tokens();
  row.bias_offset = slot * StepExecutor::kMaxBiases;
  row.bias_count = static_cast<uint32_t>(request_.biases.size());
  if (bans_ != nullptr && !bans_->bans_at(row.counter).empty())
    row.bias_count = static_cast<uint32_t>(next_biases().size());
  row.history_slot = uses_history() ? slot : params::kNoHistory;
  return row;
}

bool ActiveRequest::bans_next() const {
  return bans_ != nullptr && !bans_->bans_at(generated_tokens()).empty();
}

std::vector<LogitBias> ActiveRequest::next_biases() const {
  std::vector<LogitBias> biases = request_.biases;
  if (bans_ == nullptr) return biases;
  for (const TokenId token : bans_->bans_at(generated_tokens())) {
    constexpr float kBanned = -std::numeric_limits<float>::infinity();
    const auto own = std::ranges::find(biases, token, &LogitBias::token);
    if (own != biases.end())
      own->bias = kBanned;
    else
      biases.push_back({.token = token, .bias = kBanned});
  }
  return biases;
}

void ActiveRequest::add_prompt_logprob(PromptLogprob logprob) {
  prompt_logprobs_.push_back(std::move(logprob));
  if (prompt_logprobs_.size() + 1 == request_.prompt.size())
    channel_->set_prompt_logprobs(std::move(prompt_logprobs_));
}

void ActiveRequest::admit(EngineClock::time_point now) {
  if (admitted_) return;
  admitted_ = true;
  times_.admitted = since_submission(now);
  // Not earlier, because its tables are as large as the context, and many requests may wait.
  if (speculation_options_.method != SpeculationMethod::kNone && bans_ == nullptr &&
      samplers_.allow_proposals()) {
    speculation_ = std::make_unique<Speculation>(
        speculation_options_, tokens_, static_cast<uint32_t>(tokens_.size()) + max_new_tokens_,
        request_.prediction);
    if (outputs_ != nullptr) speculation_->share(*outputs_, request_.owner);
  }
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

void ActiveRequest::deliver_or_hold(GeneratedToken token, EngineClock::time_point now) {
  if (held())
    held_tokens_.push_back(std::move(token));
  else
    deliver(std::move(token), now);
}

bool ActiveRequest::release_certain(EngineClock::time_point now) {
  std::optional<GeneratedToken> token;
  if (bans_ != nullptr) token = bans_->release();
  if (token) deliver_or_hold(std::move(*token), now);
  return token.has_value();
}

FinishReason ActiveRequest::accept(GeneratedToken token, EngineClock::time_point now) {
  tokens_.push_back(token.id);
  samplers_.append(token.id);
  const bool is_end_token =
      tokenizer_ != nullptr && !request_.ignore_end && tokenizer_->ends_generation(token.id);
  std::string piece;
  if (detokenizer_ && !is_end_token) piece = detokenizer_->push(token.id);
  token.text = stop_.push(piece);
  if (bans_ == nullptr) {
    deliver_or_hold(std::move(token), now);
  } else if (bans_->push(std::move(token), piece, {detokenizer_, stop_})) {
    tokens_.resize(prompt_tokens() + bans_->tokens());
    samplers_.rewind(tokens_);
    takes_back_ = !bans_->gave_up();
    return bans_->gave_up() ? FinishReason::kStop : FinishReason::kNone;
  }

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
                   .grammar_failed = grammar_failed_,
                   .text = std::move(rest),
                   .stop_string = stop_.match(),
                   .embedding = pooling_ ? pooling_->mean() : std::vector<float>(),
                   .prompt_tokens = prompt_tokens(),
                   .cached_tokens = cached_tokens_,
                   .generated_tokens = generated_tokens(),
                   .proposed_tokens = proposed_tokens_,
                   .accepted_tokens = accepted_tokens_,
                   .score = score_,
                   .times = times_});
}

}  // namespace hearth
