// Requests of Ollama's API as OpenAI's. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <variant>

#include "tools/server/api/generate.h"
#include "tools/server/api_error.h"

namespace hearth {

enum class OllamaCall { kChat, kGenerate };  // /api/chat, /api/generate

struct OllamaRequest {
  ApiKind kind = ApiKind::kChat;  // a raw prompt is a plain completion
  nlohmann::ordered_json body;    // of that kind of request
  bool load_only = false;         // asks for nothing but that the model is loaded
};

std::variant<OllamaRequest, ApiError> parse_ollama_request(OllamaCall call, std::string_view body);

// What OpenAI's fields are called in this API.
std::span<const FieldName> ollama_field_names();

}  // namespace hearth
