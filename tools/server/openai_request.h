// What clients of the OpenAI API send, checked and turned into plain data. A field that is wrong,
// unknown or not supported (request_fields.h) is refused by name. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/generation.h"
#include "engine/prompt_compression.h"
#include "engine/text/chat_template.h"
#include "tools/server/api_error.h"
#include "tools/server/request_fields.h"
#include "tools/server/sampler_fields.h"
#include "tools/server/structured_fields.h"
#include "tools/server/tool_fields.h"

namespace hearth {

struct ApiRequest {
  using Prompt = std::variant<std::string, std::vector<uint32_t>>;

  std::vector<ChatMessage> messages;  // of /v1/chat/completions
  std::vector<Prompt> prompts;        // of /v1/completions: texts or lists of token ids

  ToolFields tools;  // of /v1/chat/completions

  GenerationRequest generation;      // everything but the prompt and the grammar
  StructuredOutput structured;       // what the grammar is to be made of
  bool grammar_is_optional = false;  // the request does without one that cannot be made
  bool has_seed = false;
  uint32_t n = 1;  // completions per prompt
  bool stream = false;
  bool include_usage = false;  // in a stream
  bool logprobs = false;
  bool echo = false;                  // of /v1/completions: the prompt is part of the reply
  std::optional<std::string> suffix;  // of /v1/completions: the text after the gap to be filled
  std::optional<CompressionOptions> compress;  // how to shorten the texts first
  std::string model;
  std::string prediction;       // text that the answer may repeat
  std::string negative_prompt;  // of generation.guidance
};

// What a request is read against.
struct ApiContext {
  uint32_t vocabulary = 0;   // token ids are below it
  SamplingOptions sampling;  // what a request has that says nothing about it
  EncodeText encode = {};    // for logit biases of texts; without it they are refused
};

// The body may be any bytes.
std::variant<ApiRequest, ApiError> parse_api_request(ApiKind kind, std::string_view body,
                                                     const ApiContext& context);

struct TokenizeRequest {
  std::string content;
  bool add_special = false, parse_special = false;
};
std::variant<TokenizeRequest, ApiError> parse_tokenize_request(std::string_view body);
// The token ids, each below `vocabulary`.
std::variant<std::vector<uint32_t>, ApiError> parse_detokenize_request(std::string_view body,
                                                                       uint32_t vocabulary);

}  // namespace hearth
