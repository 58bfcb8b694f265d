// Replies in the shapes of the OpenAI API. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/generation.h"
#include "engine/text/tokenizer.h"
#include "tools/server/openai_request.h"

namespace hearth {

// What every part of one reply has in common.
struct ReplyHead {
  ApiKind kind = ApiKind::kChat;
  std::string id;  // "chatcmpl-..."
  std::string model;
  int64_t created = 0;  // seconds since 1970
};

// One completion as it grows.
struct Choice {
  std::string text;
  std::vector<GeneratedToken> tokens;  // with log-probabilities, if those were asked for
  GenerationEnd end;
};

nlohmann::json error_json(const ApiError& error);
// `ends` of every prompt's `n` completions, prompt after prompt.
nlohmann::json usage_json(std::span<const GenerationEnd> ends, uint32_t n);

// The whole reply at once; `choices` as in usage_json().
nlohmann::json reply_json(const ReplyHead& head, std::span<const Choice> choices, uint32_t n,
                          bool logprobs, const Tokenizer& tokenizer);

// Parts of a stream: the first of a choice names the role; the last has the reason.
nlohmann::json first_chunk(const ReplyHead& head, size_t index);
nlohmann::json token_chunk(const ReplyHead& head, size_t index, const GeneratedToken& token);
// With log-probabilities; `offset` counts the characters of a choice's tokens, from 0 on.
nlohmann::json token_chunk(const ReplyHead& head, size_t index, const GeneratedToken& token,
                           const Tokenizer& tokenizer, size_t& offset);
nlohmann::json last_chunk(const ReplyHead& head, size_t index, const GenerationEnd& end);
nlohmann::json usage_chunk(const ReplyHead& head, std::span<const GenerationEnd> ends, uint32_t n);

// As text; what is not UTF-8 becomes U+FFFD.
std::string to_text(const nlohmann::json& json);
// An event of a stream.
std::string to_event(const nlohmann::json& json);

}  // namespace hearth
