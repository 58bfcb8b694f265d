#include "tools/server/generation_requests.h"

#include <algorithm>
#include <random>
#include <utility>

#include "engine/text/infill.h"
#include "tools/server/chat_prompt.h"
#include "tools/server/request_errors.h"

namespace hearth {
namespace {

struct EncodedPrompts {
  std::vector<std::vector<TokenId>> ids;
  bool begins_in_reasoning = false;
};

Result<ChatPrompt> chat_prompt(const ServedModel& model, const ApiRequest& request,
                               const RequestUntil& until) {
  if (!model.chat_template.ok()) return model.chat_template.error();
  ChatOptions options{.cancelled = until.cancelled};
  if (const auto left = until.time_left(); left && *left < options.time_limit)
    options.time_limit = std::chrono::ceil<std::chrono::milliseconds>(*left);
  Result<ChatPrompt> prompt = make_chat_prompt(model, request, options);
  // A template refuses what only the client can change: the order of roles, say.
  if (!prompt.ok()) return Error{ErrorKind::kInvalid, prompt.error().message};
  return prompt;
}

Result<EncodedPrompts> encode_prompts(const ServedModel& model, ApiKind kind,
                                      const ApiRequest& request, const RequestUntil& until) {
  EncodedPrompts prompts;
  if (kind == ApiKind::kChat) {
    HEARTH_ASSIGN(ChatPrompt prompt, chat_prompt(model, request, until));
    prompts.begins_in_reasoning = prompt.begins_in_reasoning;
    prompts.ids.push_back(std::move(prompt.ids));
  }
  std::optional<InfillTokens> infill;
  if (request.suffix) infill = find_infill_tokens(model.tokenizer.vocabulary());
  for (const ApiRequest::Prompt& prompt : request.prompts) {
    // The caller has an answer for this.
    if (until.is_cancelled()) return prompts;
    const auto* ids = std::get_if<std::vector<uint32_t>>(&prompt);
    EncodeOptions options;
    if (infill) options.add_bos = false;  // infill_prompt() adds it
    std::vector<TokenId> encoded =
        ids != nullptr ? *ids : model.tokenizer.encode(std::get<std::string>(prompt), options);
    prompts.ids.push_back(infill ? infill_prompt(model.tokenizer, *infill, encoded, *request.suffix)
                                 : std::move(encoded));
  }
  return prompts;
}

// The prompts, if all of them fit the model.
std::variant<EncodedPrompts, ApiError> make_prompts(const ServedModel& model, ApiKind kind,
                                                    const ApiRequest& request,
                                                    const RequestUntil& until) {
  if (request.suffix && !find_infill_tokens(model.tokenizer.vocabulary()))
    return ApiError{.message = "'suffix' needs a model with infill tokens, which this model lacks",
                    .param = "suffix",
                    .code = "unsupported_parameter"};
  Result<EncodedPrompts> prompts = encode_prompts(model, kind, request, until);
  if (until.is_cancelled()) return kClientGone;
  // Not the client's fault, even if a template was running.
  if (until.is_late()) return kTimeIsUp;
  if (!prompts.ok()) return to_api_error(prompts.error());
  // Checked before they are copied: a prompt may be far longer than any that can run.
  for (const std::vector<TokenId>& prompt : prompts->ids)
    if (AddResult fit = model.engine.check_prompt(prompt, prompts->ids.size() * request.n);
        !fit.accepted())
      return ApiError{.message = std::move(fit.message),
                      .param = kind == ApiKind::kChat ? "messages" : "prompt",
                      .code = fit.refusal == Refusal::kTooLong ? "context_length_exceeded" : ""};
  return std::move(*prompts);
}

}  // namespace

std::optional<std::chrono::duration<double>> RequestUntil::time_left() const {
  if (deadline == Clock::time_point::max()) return std::nullopt;
  return std::max(deadline - Clock::now(), Clock::duration(0));
}

bool RequestUntil::is_late() const {
  const auto left = time_left();
  return left && *left <= left->zero();
}

std::variant<GenerationRequests, ApiError> make_generation_requests(const ServedModel& model,
                                                                    ApiKind kind,
                                                                    const ApiRequest& request,
                                                                    const RequestUntil& until) {
  auto made = make_prompts(model, kind, request, until);
  if (ApiError* error = std::get_if<ApiError>(&made)) return std::move(*error);
  EncodedPrompts& prompts = std::get<EncodedPrompts>(made);
  GenerationRequest generation = request.generation;
  if (const auto left = until.time_left()) {
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
  // The reasoning that the prompt has begun is free.
  if (prompts.begins_in_reasoning && generation.grammar != nullptr) {
    if (generation.grammar_after.empty())
      generation.grammar_after = model.style->format.reasoning->close;
    else
      generation.grammar_reasoning.begun = true;
  }
  GenerationRequests result{.begins_in_reasoning = prompts.begins_in_reasoning};
  for (std::vector<TokenId>& prompt : prompts.ids) {
    generation.prompt = std::move(prompt);
    // Seeds count up from the request's own for each prompt, so that a prompt's completions do not
    // depend on the others.
    for (uint32_t i = 0; i < request.n; ++i) {
      GenerationRequest& one = result.requests.emplace_back(generation);
      one.sampling.seed += i;
      one.forks_first = i > 0;
    }
  }
  return result;
}

}  // namespace hearth
