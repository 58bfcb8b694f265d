// Requests of OpenAI's Responses API as chat completions. Pure.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "tools/server/api/generate.h"
#include "tools/server/api_error.h"

namespace hearth {

struct ResponsesRequest {
  nlohmann::ordered_json chat;  // the body of a chat completion
  // Its messages without the instructions, which hold for one response only.
  nlohmann::ordered_json conversation;
  nlohmann::json echo;  // the settings that a response repeats
  bool store = true;
};

// The conversation of an earlier response, as JSON text; empty: it is not known.
using FindConversation = std::function<std::optional<std::string>(const std::string& id)>;

std::variant<ResponsesRequest, ApiError> parse_responses_request(std::string_view body,
                                                                 const FindConversation& find);

// What the fields of a chat completion are called in this API.
std::span<const FieldName> responses_field_names();

}  // namespace hearth
