// A schema document: where its subschemas are, which draft each follows, and what a $ref names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/grammar/json_value.h"

namespace hearth::grammar {

using SchemaId = std::uint32_t;

// Why a schema is refused. Thrown while compiling, and turned into an Error by
// Grammar::compile_json_schema(): it never leaves this folder.
struct Refusal {
  Error error;
};

enum class Draft { k4, k6, k7, k2019, k2020 };

class SchemaDocument {
 public:
  // Throws Refusal.
  explicit SchemaDocument(JsonValue root);

  const JsonValue& value(SchemaId id) const { return *places_[id].value; }
  Draft draft() const { return draft_; }
  // A JSON pointer with a leading #.
  std::string path(SchemaId id) const;
  // A subschema of a schema: under `keyword`, and in there under `name`, unless that is empty.
  SchemaId child(SchemaId parent, const JsonValue& value, std::string_view keyword,
                 std::string_view name = {});
  // What a $ref in a schema names. Throws Refusal.
  SchemaId resolve(SchemaId from, const std::string& reference, const char* keyword);
  [[noreturn]] void refuse(SchemaId id, std::string_view keyword, std::string_view reason,
                           ErrorKind kind = ErrorKind::kUnsupported) const;

 private:
  struct Place {
    const JsonValue* value = nullptr;
    SchemaId parent = 0;
    std::string step;  // from the parent, as a part of a JSON pointer
    std::string base;  // URI without fragment
  };

  void scan(SchemaId id);
  SchemaId add(const JsonValue& value, SchemaId parent, std::string step, std::string base);
  SchemaId at_pointer(SchemaId root, std::string_view pointer, SchemaId from,
                      const std::string& reference, const char* keyword);

  JsonValue root_;
  Draft draft_ = Draft::k2020;
  std::vector<Place> places_;
  std::unordered_map<const JsonValue*, SchemaId> ids_;
  std::unordered_map<std::string, SchemaId> uris_;  // with #anchor, where there is one
};

}  // namespace hearth::grammar
