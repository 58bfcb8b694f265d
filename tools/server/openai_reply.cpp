#include "tools/server/openai_reply.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/text/detokenizer.h"
#include "engine/text/utf8.h"

namespace hearth {
namespace {

using nlohmann::json;

// The reasons that OpenAI's API has: a time limit or a cancellation cuts an answer short as a token
// limit does.
std::string_view api_finish_reason(FinishReason reason, bool has_calls) {
  if (has_calls && reason == FinishReason::kStop) return "tool_calls";
  return reason == FinishReason::kStop    ? "stop"
         : reason == FinishReason::kError ? "error"
                                          : "length";
}

json byte_list(const std::string& text) {
  json bytes = json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

json token_json(uint32_t id, float logprob, const Tokenizer& tokenizer) {
  const std::string piece = tokenizer.piece(id, true);
  return {{"token", piece}, {"logprob", logprob}, {"bytes", byte_list(piece)}};
}

json chat_logprobs(std::span<const GeneratedToken> tokens, const Tokenizer& tokenizer) {
  json content = json::array();
  for (const GeneratedToken& token : tokens) {
    json entry = token_json(token.id, token.logprob, tokenizer);
    entry["top_logprobs"] = json::array();
    for (const TopLogprob& top : token.top)
      entry["top_logprobs"].push_back(token_json(top.id, top.logprob, tokenizer));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

// A token as a key of an object. Tokens that are not whole characters would all read the same, so
// they are spelt out in bytes.
std::string token_key(uint32_t id, const Tokenizer& tokenizer) {
  const std::string piece = tokenizer.piece(id, true);
  if (utf8_valid_prefix(piece) == piece.size()) return piece;
  std::string key = "bytes:";
  for (const char c : piece) key += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return key;
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

// `offset` is the number of characters before the tokens, and afterwards includes theirs.
json completion_logprobs(std::span<const GeneratedToken> tokens, const Tokenizer& tokenizer,
                         size_t& offset, const Echo& echo = {}) {
  json texts = json::array(), values = json::array(), tops = json::array();
  json offsets = json::array();
  size_t echoed = 0;
  for (const GeneratedToken& token : echo.tokens) {
    offsets.push_back(echoed);
    echoed += characters(token.text);
  }
  const auto add = [&](const GeneratedToken& token) {
    texts.push_back(token_key(token.id, tokenizer));
    if (std::isnan(token.logprob)) {
      values.push_back(json());
      tops.push_back(json());
      return;
    }
    values.push_back(token.logprob);
    json top = json::object();
    for (const TopLogprob& entry : token.top) top[token_key(entry.id, tokenizer)] = entry.logprob;
    top[token_key(token.id, tokenizer)] = token.logprob;  // even if it is not among the likeliest
    tops.push_back(std::move(top));
  };
  for (const GeneratedToken& token : echo.tokens) add(token);
  offset += characters(echo.text);
  for (const GeneratedToken& token : tokens) {
    add(token);
    offsets.push_back(offset);
    offset += characters(tokenizer.piece(token.id, false));  // as in the text
  }
  return {{"tokens", texts},
          {"token_logprobs", values},
          {"top_logprobs", tops},
          {"text_offset", offsets}};
}

json logprobs_json(ApiKind kind, std::span<const GeneratedToken> tokens, const Tokenizer& tokenizer,
                   size_t& offset, const Echo& echo = {}) {
  return kind == ApiKind::kChat ? chat_logprobs(tokens, tokenizer)
                                : completion_logprobs(tokens, tokenizer, offset, echo);
}

json object_json(const ReplyHead& head, bool chunk) {
  const char* const object = head.kind == ApiKind::kCompletion ? "text_completion"
                             : chunk                           ? "chat.completion.chunk"
                                                               : "chat.completion";
  json made = {
      {"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
  if (!head.fingerprint.empty()) made["system_fingerprint"] = head.fingerprint;
  return made;
}

// A chunk with one choice.
json chunk_json(const ReplyHead& head, size_t index, json delta, json finish, json logprobs) {
  json choice = {
      {"index", index}, {"finish_reason", std::move(finish)}, {"logprobs", std::move(logprobs)}};
  if (head.kind == ApiKind::kChat)
    choice["delta"] = std::move(delta);
  else
    choice["text"] = delta.value("content", "");
  json object = object_json(head, true);
  object["choices"] = json::array({std::move(choice)});
  return object;
}

}  // namespace

Echo make_echo(std::string text, std::span<const TokenId> prompt,
               std::span<const PromptLogprob> logprobs, const Tokenizer& tokenizer) {
  Echo echo{.text = std::move(text), .tokens = {}};
  if (logprobs.size() + 1 != prompt.size()) return echo;
  Detokenizer detokenizer(tokenizer, /*after_text=*/false);
  for (size_t i = 0; i < prompt.size(); ++i) {
    GeneratedToken& token = echo.tokens.emplace_back();
    token.id = prompt[i];
    token.text = detokenizer.push(prompt[i]);
    token.logprob = i == 0 ? std::numeric_limits<float>::quiet_NaN() : logprobs[i - 1].logprob;
    if (i > 0) token.top = logprobs[i - 1].top;
  }
  return echo;
}

json error_json(const ApiError& error) {
  return {{"error",
           {{"message", error.message},
            {"type", error.type},
            {"param", error.param.empty() ? json() : json(error.param)},
            {"code", error.code.empty() ? json() : json(error.code)}}}};
}

json usage_json(std::span<const GenerationEnd> ends, uint32_t n) {
  uint64_t prompt = 0, completion = 0, cached = 0, proposed = 0, accepted = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    completion += ends[i].generated_tokens;
    proposed += ends[i].proposed_tokens;
    accepted += ends[i].accepted_tokens;
    // A prompt counts once, however many completions it has.
    if (i % n != 0) continue;
    prompt += ends[i].prompt_tokens;
    cached += ends[i].cached_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", completion},
          {"total_tokens", prompt + completion},
          {"prompt_tokens_details", {{"cached_tokens", cached}}},
          {"completion_tokens_details",
           {{"accepted_prediction_tokens", accepted},
            {"rejected_prediction_tokens", proposed - accepted}}}};
}

json reply_json(const ReplyHead& head, std::span<const Choice> choices, uint32_t n, bool logprobs,
                const Tokenizer& tokenizer) {
  json object = object_json(head, false);
  object["choices"] = json::array();
  std::vector<GenerationEnd> ends;
  for (size_t i = 0; i < choices.size(); ++i) {
    const Choice& choice = choices[i];
    size_t offset = 0;
    json entry = {{"index", i},
                  {"finish_reason", api_finish_reason(choice.end.reason, choice.has_calls)},
                  {"logprobs", logprobs ? logprobs_json(head.kind, choice.tokens, tokenizer, offset,
                                                        choice.echo)
                                        : json()}};
    if (choice.end.score) entry["score"] = *choice.end.score;
    if (!choice.message.is_null())
      entry["message"] = choice.message;
    else if (head.kind == ApiKind::kChat)
      entry["message"] = {{"role", "assistant"}, {"content", choice.text}, {"refusal", json()}};
    else
      entry["text"] = choice.echo.text + choice.text;
    object["choices"].push_back(std::move(entry));
    ends.push_back(choice.end);
  }
  object["usage"] = usage_json(ends, n);
  return object;
}

json first_chunk(const ReplyHead& head, size_t index) {
  return chunk_json(head, index, {{"role", "assistant"}, {"content", ""}}, json(), json());
}

json echo_chunk(const ReplyHead& head, size_t index, const Echo& echo, const Tokenizer& tokenizer,
                size_t& offset) {
  return chunk_json(
      head, index, {{"content", echo.text}}, json(),
      echo.tokens.empty() ? json() : completion_logprobs({}, tokenizer, offset, echo));
}

json token_chunk(const ReplyHead& head, size_t index, const GeneratedToken& token) {
  return chunk_json(head, index, {{"content", token.text}}, json(), json());
}

json token_chunk(const ReplyHead& head, size_t index, const GeneratedToken& token,
                 const Tokenizer& tokenizer, size_t& offset) {
  return chunk_json(head, index, {{"content", token.text}}, json(),
                    logprobs_json(head.kind, std::span(&token, 1), tokenizer, offset));
}

json delta_chunk(const ReplyHead& head, size_t index, json delta,
                 std::span<const GeneratedToken> tokens, const Tokenizer& tokenizer) {
  return chunk_json(head, index, std::move(delta), json(),
                    tokens.empty() ? json() : chat_logprobs(tokens, tokenizer));
}

json last_chunk(const ReplyHead& head, size_t index, const GenerationEnd& end, bool has_calls) {
  json delta = json::object();
  if (!end.text.empty()) delta["content"] = end.text;
  return chunk_json(head, index, std::move(delta), api_finish_reason(end.reason, has_calls),
                    json());
}

json usage_chunk(const ReplyHead& head, std::span<const GenerationEnd> ends, uint32_t n) {
  json object = object_json(head, true);
  object["choices"] = json::array();
  object["usage"] = usage_json(ends, n);
  return object;
}

std::string to_text(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string to_event(const json& object) { return "data: " + to_text(object) + "\n\n"; }

}  // namespace hearth
