// The contents of tokenizer.json: the long lists as plain vectors, the rest as JSON. Private to
// this folder.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/result.h"

namespace hearth {

struct TokenizerJson {
  std::vector<std::pair<std::string, std::uint64_t>> vocabulary;  // in file order
  std::vector<std::string> merges;                                // "left right", best first
  nlohmann::json rest;  // all but those two; null where the file has nothing
};

Result<TokenizerJson> parse_tokenizer_json(std::string_view text);

// Parses a JSON object; the error says where `what` is not valid.
Result<nlohmann::json> parse_json_object(std::string_view text, const char* what);

// The member, or null if absent; these files do not distinguish the two. Safe on any JSON value.
const nlohmann::json& member(const nlohmann::json& object, const char* key);
// The member's text; empty if it is not a string.
std::string text_member(const nlohmann::json& object, const char* key);
bool flag_member(const nlohmann::json& object, const char* key, bool otherwise);

}  // namespace hearth
