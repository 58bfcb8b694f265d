// tokenizer.json as it lies on disk: the long lists as plain vectors, the rest as JSON. Private to
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
  nlohmann::json rest;  // without those two; null values where the file has none
};

Result<TokenizerJson> parse_tokenizer_json(std::string_view text);

// An object from JSON text, or an error that says where it is not.
Result<nlohmann::json> parse_json_object(std::string_view text, const char* what);

// The member, or null: absent and null are the same in these files. Safe on any JSON value.
const nlohmann::json& member(const nlohmann::json& object, const char* key);
// The member's text; empty where it is none.
std::string text_member(const nlohmann::json& object, const char* key);
bool flag_member(const nlohmann::json& object, const char* key, bool otherwise);

}  // namespace hearth
