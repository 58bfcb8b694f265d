// JSON as a schema needs it: members in their order, numbers as they are spelt. Depth and size are
// limited, because schemas come from clients.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/result.h"

namespace hearth::grammar {

struct JsonValue {
  enum class Kind { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };
  struct Member;

  Kind kind = Kind::kNull;
  std::string text;  // of a string; the spelling of a number
  std::vector<JsonValue> items;
  std::vector<Member> members;  // names are unique: the last one counts

  bool is_boolean() const { return kind == Kind::kFalse || kind == Kind::kTrue; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_number() const { return kind == Kind::kNumber; }
  bool is_array() const { return kind == Kind::kArray; }
  bool is_object() const { return kind == Kind::kObject; }
  // A member by name, or null.
  const JsonValue* find(std::string_view name) const;
};

struct JsonValue::Member {
  std::string name;
  JsonValue value;
};

Result<JsonValue> parse_json(std::string_view text);
// Compact, members in their order.
std::string to_text(const JsonValue& value);
// As JSON Schema compares: numbers by value, objects without regard to order.
bool equal(const JsonValue& a, const JsonValue& b);

}  // namespace hearth::grammar
