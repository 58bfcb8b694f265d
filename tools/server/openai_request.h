// What clients of the OpenAI API send, checked and turned into plain data. Unknown fields are
// ignored; a field of the wrong type or out of range is refused by name. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/generation.h"
#include "engine/text/chat_template.h"

namespace hearth {

// What is wrong with a request, as the reply says it.
struct ApiError {
  int status = 400;
  std::string message = {};
  std::string param = {};  // the field, if one is to blame
  std::string type = "invalid_request_error";
  std::string code = {};
};

struct ApiRequest {
  using Prompt = std::variant<std::string, std::vector<uint32_t>>;

  // Of /v1/chat/completions: messages; of /v1/completions: one or several texts or lists of ids.
  std::vector<ChatMessage> messages;
  std::vector<Prompt> prompts;

  GenerationRequest generation;  // all but the prompt
  bool has_seed = false;
  uint32_t n = 1;  // completions of each prompt
  bool stream = false;
  bool include_usage = false;  // in a stream
  bool logprobs = false;
  std::string model;
};

enum class ApiKind { kCompletion, kChat };

// `vocabulary` bounds token ids. REQUIRES: nothing of the body.
std::variant<ApiRequest, ApiError> parse_api_request(ApiKind kind, std::string_view body,
                                                     uint32_t vocabulary);

struct TokenizeRequest {
  std::string content;
  bool add_special = false, parse_special = false;
};
std::variant<TokenizeRequest, ApiError> parse_tokenize_request(std::string_view body);
// The ids, each below `vocabulary`.
std::variant<std::vector<uint32_t>, ApiError> parse_detokenize_request(std::string_view body,
                                                                       uint32_t vocabulary);

}  // namespace hearth
