// What happens to the fields of another API's request on their way into one of OpenAI's. Nothing is
// dropped silently: a field is read, passed on, known to change nothing, or refused by name. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "tools/server/api_error.h"

namespace hearth {

struct FieldRules {
  std::span<const std::string_view> read;      // by the adapter itself
  std::span<const std::string_view> passed;    // to OpenAI's field of the same name
  std::span<const std::string_view> harmless;  // change nothing
  std::span<const std::string_view> unsupported;
};

// Copies the fields that are passed from `from` to `to`. An error names the first field that is
// unknown, or that is not supported and asks for something: null, false, "", [] and {} do not.
// `prefix` is where the fields are: "options.", for example.
std::optional<ApiError> pass_fields(const FieldRules& rules, const nlohmann::ordered_json& from,
                                    nlohmann::ordered_json& to, std::string_view prefix = {});

// A body, which must be an object, with its fields in the order of the text: a schema's properties
// are generated in that order.
std::variant<nlohmann::ordered_json, ApiError> parse_ordered_body(std::string_view body);

// The field, or null if it is missing or null.
const nlohmann::ordered_json* given_field(const nlohmann::ordered_json& object,
                                          std::string_view name);

// The field as a string; empty if it is missing or something else.
std::string text_field(const nlohmann::ordered_json& object, std::string_view name);

ApiError field_error(std::string name, std::string_view what);  // "'name' must be a string"
ApiError unsupported_content(std::string name, std::string_view type);

// The ids of calls that results may answer, as a conversation continues. Checked here rather than
// by the chat completion, whose messages are not where the client has put them.
using KnownCallIds = std::set<std::string>;
// An error if there is no such call; `name` is the field with its id.
std::optional<ApiError> check_answered(const KnownCallIds& calls, const std::string& id,
                                       std::string name);

}  // namespace hearth
