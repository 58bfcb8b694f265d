// Requests of Anthropic's Messages API as chat completions. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <variant>

#include "tools/server/api/generate.h"
#include "tools/server/api_error.h"

namespace hearth {

enum class AnthropicCall {
  kCreate,       // /v1/messages
  kCountTokens,  // /v1/messages/count_tokens, which needs no max_tokens
};

// The body of a chat completion.
std::variant<nlohmann::ordered_json, ApiError> parse_anthropic_request(AnthropicCall call,
                                                                       std::string_view body);

// What the fields of a chat completion are called in this API.
std::span<const FieldName> anthropic_field_names();

}  // namespace hearth
