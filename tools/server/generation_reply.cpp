#include "tools/server/generation_reply.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>
#include <utility>

namespace hearth {
namespace {

// How often a wait for tokens looks whether the client is still there: rarely enough to cost
// nothing, often enough to cancel within a step.
constexpr auto kClientGlance = std::chrono::milliseconds(10);

ReplyOptions reply_options(const ServedModel& model, ReplyHead head, const ApiRequest& request) {
  std::vector<TokenId> shown_tokens;
  if (head.kind == ApiKind::kChat && model.style != nullptr) {
    const auto shown = model.style->shown_tokens(request.tools.may_call());
    shown_tokens.assign(shown.begin(), shown.end());
  }
  return {.model = model,
          .head = std::move(head),
          .stream = request.stream,
          .logprobs = request.logprobs,
          .ignore_end = request.generation.ignore_end,
          .has_stops = !request.generation.stop.empty(),
          .echo = request.echo,
          .grammar_field = request.generation.grammar ? request.structured.field : "",
          .shown_tokens = std::move(shown_tokens)};
}

// What `echo` shows of the prompt: the text as it was sent.
std::string echoed_text(const ApiRequest::Prompt& prompt, const Tokenizer& tokenizer) {
  const auto* ids = std::get_if<std::vector<uint32_t>>(&prompt);
  return ids != nullptr ? tokenizer.decode(*ids) : std::get<std::string>(prompt);
}

// Null if the text is nothing but the message's content.
std::unique_ptr<ParsedReply> make_parsed(const ReplyOptions& options, const ApiRequest& request,
                                         bool begins_in_reasoning) {
  const ReplyStyle* const style = options.model.style.get();
  if (options.head.kind != ApiKind::kChat || style == nullptr) return nullptr;
  std::vector<Tool> tools;
  if (request.tools.may_call()) tools = request.tools.tools;
  const ReplyFormat& format = style->format;
  if (tools.empty() && format.reasoning == nullptr && !format.always_parsed()) return nullptr;
  std::random_device device;
  return std::make_unique<ParsedReply>(ParsedReply::Options{
      .parser = {.format = format,
                 .tools = std::move(tools),
                 .begins_in_reasoning = begins_in_reasoning,
                 .must_call = request.tools.choice == ToolFields::Choice::kRequired},
      .parallel = request.tools.parallel,
      .id_seed = (uint64_t{device()} << 32) | device()});
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
    : options_(reply_options(model, std::move(head), request)),
      n_(request.n),
      include_usage_(request.include_usage),
      wakeup_(std::make_shared<Wakeup>()) {}

std::variant<std::unique_ptr<GenerationReply>, ApiError> GenerationReply::begin(
    const ServedModel& model, ReplyHead head, const ApiRequest& request, const RequestUntil& until,
    std::unique_ptr<ReplyAdapter> adapter) {
  std::unique_ptr<GenerationReply> reply(new GenerationReply(model, std::move(head), request));
  ApiRequest shorter;
  if (request.compress) {
    shorter = request;
    const auto report = compress_request(model, shorter, {until.deadline, until.cancelled});
    if (until.is_cancelled()) return kClientGone;
    if (until.is_late()) return kTimeIsUp;
    if (!report.ok()) return to_api_error(report.error());
    reply->compression_ = *report;
  }
  const ApiRequest& used = request.compress ? shorter : request;
  auto made = make_generation_requests(model, reply->options_.head.kind, used, until);
  if (ApiError* error = std::get_if<ApiError>(&made)) return std::move(*error);
  auto& requests = std::get<GenerationRequests>(made);
  reply->adapter_ = std::move(adapter);
  if (reply->adapter_)
    reply->adapter_->start(static_cast<uint32_t>(requests.requests.front().prompt.size()));
  if (auto error = reply->submit(used, std::move(requests))) return std::move(*error);
  return reply;
}

std::optional<ApiError> GenerationReply::submit(const ApiRequest& request,
                                                GenerationRequests made) {
  const ServedModel& model = options_.model;
  for (GenerationRequest& one : made.requests) one.shown_tokens = options_.shown_tokens;
  std::vector<ReplyPart::EchoedPrompt> echoed(made.requests.size());
  for (size_t i = 0; i < echoed.size() && request.echo; ++i) {
    echoed[i].text = echoed_text(request.prompts[i / request.n], model.tokenizer);
    if (request.logprobs) echoed[i].ids = made.requests[i].prompt;
  }
  auto streams = model.engine.submit(std::move(made.requests));
  if (!streams.ok()) return submit_error(streams.error(), model.engine, options_.grammar_field);
  for (size_t i = 0; i < streams->size(); ++i) {
    TokenStream& stream = (*streams)[i];
    stream.set_notify([wakeup = wakeup_] { wakeup->notify(); });
    parts_.emplace_back(options_, i, std::move(stream), std::move(echoed[i]),
                        make_parsed(options_, request, made.begins_in_reasoning));
  }
  return std::nullopt;
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
  for (ReplyPart& part : parts_) {
    if (part.end().reason == FinishReason::kError)
      return generation_error(part.end(), options_.grammar_field);
    choices.push_back(part.take_choice());
  }
  nlohmann::json object =
      reply_json(options_.head, choices, n_, options_.logprobs, options_.model.tokenizer);
  if (compression_) object["compression"] = compression_json(*compression_);
  if (!adapter_) return to_text(object);
  return adapter_->whole(object, choices.front().end, parts_.front().deltas());
}

std::optional<ApiError> GenerationReply::wait_for_start(const Gone& gone) {
  while (!parts_.front().wait_for_start(kClientGlance))
    if (gone()) return kClientGone;
  return parts_.front().failed_start();
}

bool GenerationReply::write(const Write& write, const Gone& gone) {
  for (;;) {
    std::string text = take_all();
    if (all_closed()) {
      if (adapter_) return write(text + adapter_->end(parts_.front().end()));
      if (include_usage_) {
        nlohmann::json chunk = usage_chunk(options_.head, ends(), n_);
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
  return std::ranges::all_of(parts_, &ReplyPart::is_closed);
}

std::vector<GenerationEnd> GenerationReply::ends() const {
  std::vector<GenerationEnd> ends;
  for (const ReplyPart& part : parts_) ends.push_back(part.end());
  return ends;
}

// Takes the tokens that every part has got since the last time, and returns what they add to a
// stream.
std::string GenerationReply::take_all() {
  ReplyPart::Chunks chunks;
  for (ReplyPart& part : parts_) part.take_new(chunks);
  std::string text;
  for (nlohmann::json& chunk : chunks) text += to_event(std::move(chunk));
  return text;
}

}  // namespace hearth
