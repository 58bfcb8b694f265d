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

// What all parts of one reply have in common.
struct ReplyHead {
  ApiKind kind = ApiKind::kChat;
  std::string id;  // "chatcmpl-..."
  std::string model;
  int64_t created = 0;           // seconds since 1970
  std::string fingerprint = {};  // of the server, so that clients notice a change; empty: none
};

// The prompt as a part of the reply.
struct Echo {
  std::string text;
  // With log-probabilities, which the first has not (NaN); empty if not asked for.
  std::vector<GeneratedToken> tokens;
};
Echo make_echo(std::string text, std::span<const TokenId> prompt,
               std::span<const PromptLogprob> logprobs, const Tokenizer& tokenizer);

// One completion.
struct Choice {
  Echo echo;  // before the text
  std::string text;
  std::vector<GeneratedToken> tokens;  // with log-probabilities; empty if not asked for
  GenerationEnd end;
  nlohmann::json message = {};  // of a chat that was read for reasoning and calls; null: the text
  bool has_calls = false;       // the message calls tools
};

nlohmann::json error_json(const ApiError& error);
// `ends` has the `n` completions of the first prompt, then those of the second, and so on.
nlohmann::json usage_json(std::span<const GenerationEnd> ends, uint32_t n);

// A whole reply; `choices` are in the order of usage_json().
nlohmann::json reply_json(const ReplyHead& head, std::span<const Choice> choices, uint32_t n,
                          bool logprobs, const Tokenizer& tokenizer);

// Parts of a stream: a choice's first chunk names the role, its last one the reason for the end.
nlohmann::json first_chunk(const ReplyHead& head, size_t index);
nlohmann::json echo_chunk(const ReplyHead& head, size_t index, const Echo& echo,
                          const Tokenizer& tokenizer, size_t& offset);
nlohmann::json token_chunk(const ReplyHead& head, size_t index, const GeneratedToken& token);
// With log-probabilities. `offset` counts the characters of a choice's tokens; it starts at 0.
nlohmann::json token_chunk(const ReplyHead& head, size_t index, const GeneratedToken& token,
                           const Tokenizer& tokenizer, size_t& offset);
// Of a chat that is read for reasoning and calls. `tokens` are those with log-probabilities.
nlohmann::json delta_chunk(const ReplyHead& head, size_t index, nlohmann::json delta,
                           std::span<const GeneratedToken> tokens, const Tokenizer& tokenizer);
nlohmann::json last_chunk(const ReplyHead& head, size_t index, const GenerationEnd& end,
                          bool has_calls = false);
nlohmann::json usage_chunk(const ReplyHead& head, std::span<const GenerationEnd> ends, uint32_t n);

// As text; bytes that are not UTF-8 become U+FFFD.
std::string to_text(const nlohmann::json& json);
// As a server-sent event.
std::string to_event(const nlohmann::json& json);

}  // namespace hearth
