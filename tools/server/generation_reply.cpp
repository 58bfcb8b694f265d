#include "tools/server/generation_reply.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <random>
#include <span>
#include <utility>

#include "engine/text/encode_chat.h"

namespace hearth {
namespace {

ApiError to_api_error(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kBusy:
      return {.status = 429,
              .message = error.message,
              .type = "rate_limit_error",
              .code = "queue_full"};
    case ErrorKind::kInvalid:
      return {.status = 400, .message = error.message};
    default:
      return {.status = 503, .message = error.message, .type = "server_error"};
  }
}

using Until = GenerationReply::Until;

// Until the deadline, if there is one; at least 0.
std::optional<std::chrono::duration<double>> time_left(const Until& until) {
  if (until.deadline == GenerationReply::Clock::time_point::max()) return std::nullopt;
  return std::max(until.deadline - GenerationReply::Clock::now(),
                  GenerationReply::Clock::duration(0));
}

Result<std::vector<TokenId>> chat_prompt(const ServedModel& model,
                                         std::span<const ChatMessage> messages,
                                         const Until& until) {
  HEARTH_ASSIGN(const ChatTemplate* chat, model.chat_template);
  ChatOptions options{.cancelled = until.cancelled};
  if (const auto left = time_left(until); left && *left < options.time_limit)
    options.time_limit = std::chrono::duration_cast<std::chrono::milliseconds>(*left);
  Result<std::vector<TokenId>> prompt = encode_chat(*chat, model.tokenizer, messages, options);
  // A template refuses what only the client can change: the order of roles, say.
  if (!prompt.ok()) return Error{ErrorKind::kInvalid, prompt.error().message};
  return prompt;
}

Result<std::vector<std::vector<TokenId>>> encode_prompts(const ServedModel& model, ApiKind kind,
                                                         const ApiRequest& request,
                                                         const Until& until) {
  std::vector<std::vector<TokenId>> prompts;
  if (kind == ApiKind::kChat) {
    HEARTH_ASSIGN(std::vector<TokenId> prompt, chat_prompt(model, request.messages, until));
    prompts.push_back(std::move(prompt));
  }
  for (const ApiRequest::Prompt& prompt : request.prompts) {
    // The caller has an answer for this.
    if (until.cancelled != nullptr && *until.cancelled) return prompts;
    const auto* ids = std::get_if<std::vector<uint32_t>>(&prompt);
    prompts.push_back(ids != nullptr ? *ids
                                     : model.tokenizer.encode(std::get<std::string>(prompt)));
  }
  return prompts;
}

// One request per completion: `n` of the first prompt, then `n` of the second, and so on. Seeds
// count up from the request's own for each prompt, so that a prompt's completions do not depend on
// the others.
std::variant<std::vector<GenerationRequest>, ApiError> make_requests(const ServedModel& model,
                                                                     ApiKind kind,
                                                                     const ApiRequest& request,
                                                                     const Until& until) {
  Result<std::vector<std::vector<TokenId>>> prompts = encode_prompts(model, kind, request, until);
  if (until.cancelled != nullptr && *until.cancelled) return kClientGone;
  // Not the client's fault, even if a template was running.
  if (const auto left = time_left(until); left && *left <= left->zero()) return kTimeIsUp;
  if (!prompts.ok()) return to_api_error(prompts.error());
  // Checked before they are copied: a prompt may be far longer than any that can run.
  for (const std::vector<TokenId>& prompt : *prompts)
    if (AddResult fit = model.engine.check_prompt(prompt, prompts->size() * request.n);
        !fit.accepted())
      return ApiError{.message = std::move(fit.message),
                      .param = kind == ApiKind::kChat ? "messages" : "prompt",
                      .code = fit.refusal == Refusal::kTooLong ? "context_length_exceeded" : ""};
  GenerationRequest generation = request.generation;
  if (const auto left = time_left(until)) {
    if (*left <= left->zero()) return kTimeIsUp;
    generation.time_limit_seconds = left->count();
  }
  if (!request.has_seed) {
    std::random_device device;
    generation.sampling.seed = (uint64_t{device()} << 32) | device();
  }
  if (!request.prediction.empty()) {
    generation.prediction = model.tokenizer.encode(request.prediction, {.add_bos = false});
    // An answer cannot be longer than the context.
    const size_t most = model.engine.limits().context;
    generation.prediction.resize(std::min(generation.prediction.size(), most));
  }
  std::vector<GenerationRequest> requests;
  for (std::vector<TokenId>& prompt : *prompts) {
    generation.prompt = std::move(prompt);
    for (uint32_t i = 0; i < request.n; ++i) {
      GenerationRequest& one = requests.emplace_back(generation);
      one.sampling.seed += i;
      one.forks_first = i > 0;
    }
  }
  return requests;
}

// How often a wait for tokens looks whether the client is still there: rarely enough to cost
// nothing, often enough to cancel within a step.
constexpr auto kClientGlance = std::chrono::milliseconds(10);

// Drops the tokens of a stop string, which are not part of the text.
void drop_beyond(Choice& choice, const Tokenizer& tokenizer) {
  size_t bytes = 0, kept = 0;
  for (; kept < choice.tokens.size() && bytes < choice.text.size(); ++kept)
    bytes += tokenizer.piece(choice.tokens[kept].id, false).size();
  choice.tokens.resize(kept);
}

ApiError generation_error(const GenerationEnd& end) {
  return {.status = 503, .message = end.message, .type = "server_error"};
}

}  // namespace

struct GenerationReply::Wakeup {
  std::mutex mutex;
  std::condition_variable arrived;
  bool any = false;

  void notify() {
    const std::lock_guard lock(mutex);
    any = true;
    arrived.notify_one();
  }
};

GenerationReply::GenerationReply(const ServedModel& model, ReplyHead head,
                                 const ApiRequest& request)
    : model_(model),
      head_(std::move(head)),
      n_(request.n),
      stream_(request.stream),
      include_usage_(request.include_usage),
      logprobs_(request.logprobs),
      ignore_end_(request.generation.ignore_end),
      has_stops_(!request.generation.stop.empty()),
      wakeup_(std::make_shared<Wakeup>()) {}

std::variant<std::unique_ptr<GenerationReply>, ApiError> GenerationReply::begin(
    const ServedModel& model, ReplyHead head, const ApiRequest& request, const Until& until) {
  std::unique_ptr<GenerationReply> reply(new GenerationReply(model, std::move(head), request));
  auto requests = make_requests(model, reply->head_.kind, request, until);
  if (ApiError* error = std::get_if<ApiError>(&requests)) return std::move(*error);
  auto streams = model.engine.submit(std::move(std::get<std::vector<GenerationRequest>>(requests)));
  if (!streams.ok()) return to_api_error(streams.error());
  for (TokenStream& stream : *streams) {
    stream.set_notify([wakeup = reply->wakeup_] { wakeup->notify(); });
    reply->parts_.push_back({.stream = std::move(stream)});
  }
  return reply;
}

void GenerationReply::wait_for_tokens() {
  std::unique_lock lock(wakeup_->mutex);
  wakeup_->arrived.wait_for(lock, kClientGlance, [this] { return wakeup_->any; });
  wakeup_->any = false;
}

std::variant<std::string, ApiError> GenerationReply::collect(const Gone& gone) {
  while (!all_closed()) {
    wait_for_tokens();
    take_all();
    if (gone()) return kClientGone;
  }
  std::vector<Choice> choices;
  for (Part& part : parts_) {
    if (part.choice.end.reason == FinishReason::kError) return generation_error(part.choice.end);
    choices.push_back(std::move(part.choice));
  }
  return to_text(reply_json(head_, choices, n_, logprobs_, model_.tokenizer));
}

std::optional<ApiError> GenerationReply::wait_for_start(const Gone& gone) {
  Part& part = parts_.front();
  while (!(part.first = part.stream.next(kClientGlance)) && !part.stream.ended())
    if (gone()) return kClientGone;
  if (part.first || part.stream.end().reason != FinishReason::kError) return std::nullopt;
  return generation_error(part.stream.end());
}

bool GenerationReply::write(const Write& write, const Gone& gone) {
  for (;;) {
    std::string text = take_all();
    if (all_closed()) {
      if (include_usage_) text += to_event(usage_chunk(head_, ends(), n_));
      return write(text + "data: [DONE]\n\n");
    }
    if (!text.empty() && !write(text)) return false;
    if (gone()) return false;
    wait_for_tokens();
  }
}

bool GenerationReply::all_closed() const {
  for (const Part& part : parts_)
    if (!part.closed) return false;
  return true;
}

std::vector<GenerationEnd> GenerationReply::ends() const {
  std::vector<GenerationEnd> ends;
  for (const Part& part : parts_) ends.push_back(part.choice.end);
  return ends;
}

// Takes the tokens that every part has got since the last time, and returns what they add to a
// stream.
std::string GenerationReply::take_all() {
  std::string text;
  for (size_t index = 0; index < parts_.size(); ++index) {
    Part& part = parts_[index];
    if (part.closed) continue;
    std::optional<GeneratedToken> token = std::exchange(part.first, std::nullopt);
    while (token || (token = part.stream.next(std::chrono::nanoseconds(0)))) {
      text += take(index, std::move(*token));
      token.reset();
    }
    if (part.stream.ended()) text += close(index);
  }
  return text;
}

// Every token is text but the one that ends it.
bool GenerationReply::is_text(const GeneratedToken& token) const {
  return ignore_end_ || !model_.tokenizer.ends_generation(token.id);
}

// Adds a token to the reply, and returns what it adds to a stream.
std::string GenerationReply::take(size_t index, GeneratedToken token) {
  Part& part = parts_[index];
  const bool counts = logprobs_ && is_text(token);
  if (!stream_) {
    part.choice.text += token.text;
    if (counts) part.choice.tokens.push_back(std::move(token));
    return {};
  }
  std::string text;
  if (!std::exchange(part.opened, true) && head_.kind == ApiKind::kChat)
    text += to_event(first_chunk(head_, index));
  if (counts && has_stops_) {
    std::string shown = std::exchange(token.text, std::string());
    part.held.push_back(std::move(token));
    return text + write_held(index, std::move(shown), false);
  }
  part.written_bytes += token.text.size();
  // A token of half a character has no text yet; only its logprob can be sent.
  if (counts)
    text += to_event(token_chunk(head_, index, token, model_.tokenizer, part.offset));
  else if (!token.text.empty())
    text += to_event(token_chunk(head_, index, token));
  return text;
}

// Writes `text`, and those of the held tokens whose text has been written: all of it, or with
// `begun` at least its first byte.
std::string GenerationReply::write_held(size_t index, std::string text, bool begun) {
  Part& part = parts_[index];
  part.written_bytes += text.size();
  std::string events;
  auto token = part.held.begin();
  for (; token != part.held.end(); ++token) {
    const size_t end = part.token_bytes + model_.tokenizer.piece(token->id, false).size();
    if (begun ? part.token_bytes >= part.written_bytes : end > part.written_bytes) break;
    part.token_bytes = end;
    token->text = std::exchange(text, std::string());
    events += to_event(token_chunk(head_, index, *token, model_.tokenizer, part.offset));
  }
  part.held.erase(part.held.begin(), token);
  if (!text.empty()) events += to_event(token_chunk(head_, index, {.text = std::move(text)}));
  return events;
}

std::string GenerationReply::close(size_t index) {
  Part& part = parts_[index];
  part.closed = true;
  part.choice.end = part.stream.end();
  part.choice.text += part.choice.end.text;
  if (!stream_) {
    if (has_stops_ && part.choice.end.reason == FinishReason::kStop)
      drop_beyond(part.choice, model_.tokenizer);
    return {};
  }
  if (part.choice.end.reason == FinishReason::kError)
    return to_event(error_json(generation_error(part.choice.end)));
  std::string text;
  // A choice that ended before its first token needs a role, too.
  if (!part.opened && head_.kind == ApiKind::kChat) text = to_event(first_chunk(head_, index));
  // Of the tokens still held, those that begin before the stop string are part of the text; without
  // a stop string all are.
  part.written_bytes = part.choice.end.reason == FinishReason::kStop
                           ? part.written_bytes + part.choice.end.text.size()
                           : std::numeric_limits<size_t>::max();
  text += write_held(index, {}, true);
  return text + to_event(last_chunk(head_, index, part.choice.end));
}

}  // namespace hearth
