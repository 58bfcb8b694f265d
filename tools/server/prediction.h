// The API's field `prediction`: text that the answer is expected to repeat, which speculation looks
// up (GenerationRequest::prediction). Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace hearth {

// Reads {"type": "content", "content": TEXT or a list of text parts}. Returns what is wrong with
// it, as the end of a sentence.
std::optional<std::string> read_prediction(const nlohmann::json& field, std::string& text);

}  // namespace hearth
