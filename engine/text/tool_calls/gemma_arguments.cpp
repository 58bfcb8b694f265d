#include "engine/text/tool_calls/gemma_arguments.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

namespace hearth {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepestGemmaValue = 8;
constexpr std::size_t kLongestGemmaRule = 1 << 16;  // bytes

bool is_plain_key(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Keywords that only describe.
bool is_annotation(std::string_view keyword) {
  static constexpr std::string_view kNames[] = {"type",     "description", "title",   "default",
                                                "examples", "example",     "$schema", "nullable"};
  return std::ranges::find(kNames, keyword) != std::end(kNames);
}

class GemmaRules {
 public:
  GemmaRules(const FixedText& fixed, std::string_view quote) : fixed_(fixed), quote_(quote) {}

  // Nothing: cannot be enforced.
  std::optional<std::string> value(const Json& schema, int depth) const {
    if (!schema.is_object() || depth > kDeepestGemmaValue) return std::nullopt;
    if (schema.contains("enum")) return choices(schema, schema["enum"]);
    if (schema.contains("const")) return choices(schema, Json::array({schema["const"]}));
    const Json type = schema.value("type", Json());
    if (type.is_string()) return typed(schema, type.get<std::string>(), depth);
    if (!type.is_array() || type.empty()) return std::nullopt;
    std::string either;
    for (const Json& one : type) {
      if (!one.is_string()) return std::nullopt;
      const auto rule = typed(schema, one.get<std::string>(), depth);
      if (!rule) return std::nullopt;
      either += (either.empty() ? "" : " | ") + *rule;
    }
    return "(" + either + ")";
  }

 private:
  static bool has_only(const Json& schema, std::span<const std::string_view> keywords) {
    for (const auto& [key, unused] : schema.items())
      if (!is_annotation(key) && std::ranges::find(keywords, key) == keywords.end()) return false;
    return true;
  }

  std::optional<std::string> typed(const Json& schema, const std::string& type, int depth) const {
    if (type == "string") return has_only(schema, {}) ? std::optional(text()) : std::nullopt;
    if (type == "array") return array(schema, depth);
    if (type == "object") return object(schema, depth);
    Json alone = schema;
    alone["type"] = type;
    return "%json " + alone.dump();
  }

  std::string text() const { return fixed_(quote_) + " " + fixed_.text_before(quote_); }

  std::optional<std::string> choices(const Json& schema, const Json& values) const {
    static constexpr std::string_view kChoice[] = {"enum", "const"};
    if (!has_only(schema, kChoice) || !values.is_array() || values.empty()) return std::nullopt;
    std::string either;
    for (const Json& one : values) {
      if (one.is_structured()) return std::nullopt;
      const std::string text = one.is_string() ? one.get<std::string>() : one.dump();
      if (text.find(quote_) != text.npos || text.empty()) return std::nullopt;
      const std::string quote(one.is_string() ? quote_ : "");
      either += (either.empty() ? "" : " | ") + fixed_(quote + text + quote);
    }
    return "(" + either + ")";
  }

  std::optional<std::string> array(const Json& schema, int depth) const {
    static constexpr std::string_view kArray[] = {"items", "minItems"};
    if (!has_only(schema, kArray)) return std::nullopt;
    const auto item = value(schema.value("items", Json()), depth + 1);
    const Json least = schema.value("minItems", Json(0));
    if (!item || !least.is_number_integer() || least > 1) return std::nullopt;
    const char* const many =
        least > 0 ? R"("[" {0} ("," {0})* "]")" : R"("[" ({0} ("," {0})*)? "]")";
    return fmt::format(fmt::runtime(many), *item);
  }

  // Members in the schema's order, with commas between those that are there.
  std::optional<std::string> object(const Json& schema, int depth) const {
    static constexpr std::string_view kObject[] = {"properties", "required",
                                                   "additionalProperties"};
    if (!has_only(schema, kObject)) return std::nullopt;
    const Json properties = schema.value("properties", Json::object());
    const Json required = schema.value("required", Json::array());
    std::vector<std::string> members;
    std::vector<bool> needed;
    for (const auto& [name, property] : properties.items()) {
      const auto rule = value(property, depth + 1);
      if (!rule || !is_plain_key(name)) return std::nullopt;
      members.push_back(fixed_(name + ":") + " " + *rule);
      needed.push_back(std::ranges::find(required, Json(name)) != required.end());
    }
    for (const Json& name : required)
      if (!name.is_string() || !properties.contains(name.get<std::string>())) return std::nullopt;
    // One alternative for each member that can be the first.
    std::string either;
    bool may_be_empty = true;
    for (std::size_t first = 0; first < members.size() && may_be_empty; ++first) {
      std::string rest = members[first];
      for (std::size_t i = first + 1; i < members.size(); ++i)
        rest += fmt::format(" (\",\" {}){}", members[i], needed[i] ? "" : "?");
      either += (either.empty() ? "" : " | ") + rest;
      may_be_empty = !needed[first];
      if (either.size() > kLongestGemmaRule) return std::nullopt;
    }
    if (members.empty()) return std::string("\"{}\"");
    return fmt::format("\"{{\" ({}){} \"}}\"", either, may_be_empty ? "?" : "");
  }

  const FixedText& fixed_;
  const std::string_view quote_;
};

}  // namespace

std::string gemma_arguments_rule(const Json& schema, const FixedText& fixed,
                                 std::string_view quote) {
  Json object = schema.is_object() ? schema : Json::object();
  if (!object.contains("type")) object["type"] = "object";
  std::string rule = GemmaRules(fixed, quote).value(object, 0).value_or("");
  return rule.size() > kLongestGemmaRule ? std::string() : rule;
}

}  // namespace hearth
