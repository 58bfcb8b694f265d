#include "tools/server/generation_reply.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <random>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "engine/text/infill.h"
#include "tools/server/chat_prompt.h"

namespace hearth {

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

ApiError to_api_error(const Error& error, const Engine& engine) {
  ApiError result = to_api_error(error);
  result.retry_seconds = static_cast<int>(std::ceil(engine.retry_seconds()));
  return result;
}

namespace {

using Until = GenerationReply::Until;

// Until the deadline, if there is one; at least 0.
std::optional<std::chrono::duration<double>> time_left(const Until& until) {
  if (until.deadline == GenerationReply::Clock::time_point::max()) return std::nullopt;
  return std::max(until.deadline - GenerationReply::Clock::now(),
                  GenerationReply::Clock::duration(0));
}

Result<ChatPrompt> chat_prompt(const ServedModel& model, const ApiRequest& request,
                               const Until& until) {
  if (!model.chat_template.ok()) return model.chat_template.error();
  ChatOptions options{.cancelled = until.cancelled};
  if (const auto left = time_left(until); left && *left < options.time_limit)
    options.time_limit = std::chrono::ceil<std::chrono::milliseconds>(*left);
  Result<ChatPrompt> prompt = make_chat_prompt(model, request, options);
  // A template refuses what only the client can change: the order of roles, say.
  if (!prompt.ok()) return Error{ErrorKind::kInvalid, prompt.error().message};
  return prompt;
}

Result<std::vector<std::vector<TokenId>>> encode_prompts(const ServedModel& model, ApiKind kind,
                                                         const ApiRequest& request,
                                                         const Until& until,
                                                         bool& begins_in_reasoning) {
  std::vector<std::vector<TokenId>> prompts;
  if (kind == ApiKind::kChat) {
    HEARTH_ASSIGN(ChatPrompt prompt, chat_prompt(model, request, until));
    begins_in_reasoning = prompt.begins_in_reasoning;
    prompts.push_back(std::move(prompt.ids));
  }
  std::optional<InfillTokens> infill;
  if (request.suffix) infill = find_infill_tokens(model.tokenizer.vocabulary());
  for (const ApiRequest::Prompt& prompt : request.prompts) {
    // The caller has an answer for this.
    if (until.cancelled != nullptr && *until.cancelled) return prompts;
    const auto* ids = std::get_if<std::vector<uint32_t>>(&prompt);
    EncodeOptions options;
    if (infill) options.add_bos = false;  // infill_prompt() adds it
    std::vector<TokenId> encoded =
        ids != nullptr ? *ids : model.tokenizer.encode(std::get<std::string>(prompt), options);
    prompts.push_back(infill ? infill_prompt(model.tokenizer, *infill, encoded, *request.suffix)
                             : std::move(encoded));
  }
  return prompts;
}

// What `echo` shows of the prompt: the text as it was sent.
std::string echoed_text(const ApiRequest::Prompt& prompt, const Tokenizer& tokenizer) {
  const auto* ids = std::get_if<std::vector<uint32_t>>(&prompt);
  return ids != nullptr ? tokenizer.decode(*ids) : std::get<std::string>(prompt);
}

// One request per completion: `n` of the first prompt, then `n` of the second, and so on. Seeds
// count up from the request's own for each prompt, so that a prompt's completions do not depend on
// the others.
std::variant<std::vector<GenerationRequest>, ApiError> make_requests(const ServedModel& model,
                                                                     ApiKind kind,
                                                                     const ApiRequest& request,
                                                                     const Until& until,
                                                                     bool& begins_in_reasoning) {
  if (request.suffix && !find_infill_tokens(model.tokenizer.vocabulary()))
    return ApiError{.message = "'suffix' needs a model with infill tokens, which this model lacks",
                    .param = "suffix",
                    .code = "unsupported_parameter"};
  Result<std::vector<std::vector<TokenId>>> prompts =
      encode_prompts(model, kind, request, until, begins_in_reasoning);
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
  if (generation.guidance.guides() && !request.negative_prompt.empty())
    generation.guidance.negative_prompt = model.tokenizer.encode(request.negative_prompt);
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

// A grammar that compiles, but whose masks take too much time or memory.
ApiError grammar_error(const std::string& field, const std::string& message) {
  return {.message = fmt::format("'{}': {}", field, message),
          .param = field,
          .code = "unsupported_schema"};
}

// How often a wait for tokens looks whether the client is still there: rarely enough to cost
// nothing, often enough to cancel within a step.
constexpr auto kClientGlance = std::chrono::milliseconds(10);

std::vector<TokenId> shown_tokens_of(const ServedModel& model, ApiKind kind,
                                     const ApiRequest& request) {
  if (kind != ApiKind::kChat || model.style == nullptr) return {};
  const auto shown = model.style->shown_tokens(request.tools.may_call());
  return {shown.begin(), shown.end()};
}

// The reply is not whole.
bool is_cut_off(const GenerationEnd& end) {
  return end.reason == FinishReason::kLength || end.reason == FinishReason::kTimeLimit;
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
      echo_(request.echo),
      grammar_field_(request.generation.grammar ? request.structured.field : ""),
      tools_(request.tools.may_call() ? request.tools.tools : std::vector<Tool>()),
      shown_tokens_(shown_tokens_of(model, head_.kind, request)),
      wakeup_(std::make_shared<Wakeup>()) {}

std::variant<std::unique_ptr<GenerationReply>, ApiError> GenerationReply::begin(
    const ServedModel& model, ReplyHead head, const ApiRequest& request, const Until& until,
    std::unique_ptr<ReplyAdapter> adapter) {
  std::unique_ptr<GenerationReply> reply(new GenerationReply(model, std::move(head), request));
  ApiRequest shorter;
  if (request.compress) {
    shorter = request;
    const auto report = compress_request(model, shorter, {until.deadline, until.cancelled});
    if (until.cancelled != nullptr && *until.cancelled) return kClientGone;
    if (const auto left = time_left(until); left && *left <= left->zero()) return kTimeIsUp;
    if (!report.ok()) return to_api_error(report.error());
    reply->compression_ = *report;
  }
  const ApiRequest& used = request.compress ? shorter : request;
  bool begins_in_reasoning = false;
  auto requests = make_requests(model, reply->head_.kind, used, until, begins_in_reasoning);
  if (ApiError* error = std::get_if<ApiError>(&requests)) return std::move(*error);
  auto& submitted = std::get<std::vector<GenerationRequest>>(requests);
  reply->adapter_ = std::move(adapter);
  if (reply->adapter_)
    reply->adapter_->start(static_cast<uint32_t>(submitted.front().prompt.size()));
  for (GenerationRequest& one : submitted) {
    one.shown_tokens = reply->shown_tokens_;
    // The reasoning that the prompt has begun is free.
    if (!begins_in_reasoning || one.grammar == nullptr) continue;
    if (one.grammar_after.empty())
      one.grammar_after = model.style->format.reasoning->close;
    else
      one.grammar_reasoning.begun = true;
  }
  std::vector<std::vector<TokenId>> echoed;
  if (request.echo && request.logprobs)
    for (const GenerationRequest& one : submitted) echoed.push_back(one.prompt);
  auto streams = model.engine.submit(std::move(submitted));
  if (!streams.ok()) return reply->submit_error(streams.error());
  for (TokenStream& stream : *streams) {
    stream.set_notify([wakeup = reply->wakeup_] { wakeup->notify(); });
    const size_t index = reply->parts_.size();
    Part& part = reply->parts_.emplace_back(Part{.stream = std::move(stream)});
    if (request.echo)
      part.echo_text = echoed_text(used.prompts[index / request.n], model.tokenizer);
    if (!echoed.empty()) part.echo_prompt = std::move(echoed[index]);
    if (!reply->is_parsed()) continue;
    std::random_device device;
    part.parsed = std::make_unique<ParsedReply>(ParsedReply::Options{
        .parser = {.format = model.style->format,
                   .tools = reply->tools_,
                   .begins_in_reasoning = begins_in_reasoning,
                   .must_call = request.tools.choice == ToolFields::Choice::kRequired},
        .parallel = request.tools.parallel,
        .id_seed = (uint64_t{device()} << 32) | device()});
  }
  return reply;
}

// Why nothing was submitted.
ApiError GenerationReply::submit_error(const Error& error) const {
  if (error.kind == ErrorKind::kUnsupported && !grammar_field_.empty())
    return grammar_error(grammar_field_, error.message);
  return to_api_error(error, model_.engine);
}

ApiError GenerationReply::generation_error(const GenerationEnd& end) const {
  if (end.grammar_failed && !grammar_field_.empty())
    return grammar_error(grammar_field_, end.message);
  return {.status = 503, .message = end.message, .type = "server_error"};
}

// Whether the text is more than the message's content.
bool GenerationReply::is_parsed() const {
  if (head_.kind != ApiKind::kChat || model_.style == nullptr) return false;
  const ReplyFormat& format = model_.style->format;
  return !tools_.empty() || format.reasoning != nullptr || format.always_parsed();
}

size_t GenerationReply::shown_bytes(TokenId id) const {
  return model_.tokenizer.piece(id, std::ranges::binary_search(shown_tokens_, id)).size();
}

// Drops the tokens of a stop string, which are not part of the text.
void GenerationReply::drop_beyond(Choice& choice) const {
  size_t bytes = 0, kept = 0;
  for (; kept < choice.tokens.size() && bytes < choice.text.size(); ++kept)
    bytes += shown_bytes(choice.tokens[kept].id);
  choice.tokens.resize(kept);
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
  nlohmann::json object = reply_json(head_, choices, n_, logprobs_, model_.tokenizer);
  if (compression_) object["compression"] = compression_json(*compression_);
  if (!adapter_) return to_text(object);
  return adapter_->whole(object, choices.front().end, parts_.front().deltas);
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
      if (adapter_) return write(text + adapter_->end(parts_.front().choice.end));
      if (include_usage_) {
        nlohmann::json chunk = usage_chunk(head_, ends(), n_);
        if (compression_) chunk["compression"] = compression_json(*compression_);
        text += to_event(chunk);
      }
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

// What comes before a choice's first token, in a stream: its role, or the prompt.
std::string GenerationReply::open(size_t index) {
  Part& part = parts_[index];
  if (std::exchange(part.opened, true)) return {};
  if (head_.kind == ApiKind::kChat) return to_event(first_chunk(head_, index));
  if (!echo_) return {};
  const Echo echo = make_echo(std::move(part.echo_text), part.echo_prompt,
                              part.stream.prompt_logprobs(), model_.tokenizer);
  return to_event(echo_chunk(head_, index, echo, model_.tokenizer, part.offset));
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
  std::string text = open(index);
  if (counts && has_stops_) {
    std::string shown = std::exchange(token.text, std::string());
    part.held.push_back(std::move(token));
    return text + write_held(index, std::move(shown), false);
  }
  part.written_bytes += token.text.size();
  // A token of half a character has no text yet; only its logprob can be sent.
  if (counts || !token.text.empty()) text += token_events(index, token, counts);
  return text;
}

// A token's text as events of a stream, with its log-probabilities if they are wanted.
std::string GenerationReply::token_events(size_t index, const GeneratedToken& token,
                                          bool logprobs) {
  Part& part = parts_[index];
  if (part.parsed == nullptr)
    return to_event(logprobs ? token_chunk(head_, index, token, model_.tokenizer, part.offset)
                             : token_chunk(head_, index, token));
  std::vector<nlohmann::json> deltas = part.parsed->push(token.text);
  if (logprobs && deltas.empty()) deltas.push_back(nlohmann::json::object());
  std::string events;
  std::span<const GeneratedToken> tokens(&token, logprobs ? 1 : 0);
  for (nlohmann::json& delta : deltas) {
    events += to_event(delta_chunk(head_, index, std::move(delta), tokens, model_.tokenizer));
    tokens = {};
  }
  return events;
}

// Writes `text`, and those of the held tokens whose text has been written: all of it, or with
// `begun` at least its first byte.
std::string GenerationReply::write_held(size_t index, std::string text, bool begun) {
  Part& part = parts_[index];
  part.written_bytes += text.size();
  std::string events;
  auto token = part.held.begin();
  for (; token != part.held.end(); ++token) {
    const size_t end = part.token_bytes + shown_bytes(token->id);
    if (begun ? part.token_bytes >= part.written_bytes : end > part.written_bytes) break;
    part.token_bytes = end;
    token->text = std::exchange(text, std::string());
    events += token_events(index, *token, true);
  }
  part.held.erase(part.held.begin(), token);
  if (!text.empty()) events += token_events(index, {.text = std::move(text)}, false);
  return events;
}

std::string GenerationReply::close(size_t index) {
  Part& part = parts_[index];
  part.closed = true;
  part.choice.end = part.stream.end();
  part.choice.text += part.choice.end.text;
  if (!stream_) {
    if (echo_)
      part.choice.echo = make_echo(std::move(part.echo_text), part.echo_prompt,
                                   part.stream.prompt_logprobs(), model_.tokenizer);
    if (has_stops_ && part.choice.end.reason == FinishReason::kStop) drop_beyond(part.choice);
    if (part.parsed != nullptr) {
      part.deltas = part.parsed->push(part.choice.text);
      for (nlohmann::json& delta : part.parsed->finish(is_cut_off(part.choice.end)))
        part.deltas.push_back(std::move(delta));
      part.choice.message = part.parsed->message();
      part.choice.has_calls = part.parsed->has_calls();
    }
    return {};
  }
  if (part.choice.end.reason == FinishReason::kError)
    return to_event(error_json(generation_error(part.choice.end)));
  // A choice that ended before its first token needs a role, too.
  std::string text = open(index);
  // Of the tokens still held, those that begin before the stop string are part of the text; without
  // a stop string all are.
  part.written_bytes = part.choice.end.reason == FinishReason::kStop
                           ? part.written_bytes + part.choice.end.text.size()
                           : std::numeric_limits<size_t>::max();
  text += write_held(index, {}, true);
  if (part.parsed == nullptr) return text + to_event(last_chunk(head_, index, part.choice.end));
  text += token_events(index, {.text = std::exchange(part.choice.end.text, {})}, false);
  for (nlohmann::json& delta : part.parsed->finish(is_cut_off(part.choice.end)))
    text += to_event(delta_chunk(head_, index, std::move(delta), {}, model_.tokenizer));
  return text + to_event(last_chunk(head_, index, part.choice.end, part.parsed->has_calls()));
}

}  // namespace hearth
