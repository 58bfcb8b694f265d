#include "tools/server/api/field_rules.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "engine/near_words.h"
#include "tools/server/json_body.h"

namespace hearth {
namespace {

using nlohmann::ordered_json;

// An object that keeps its order compares each new name with all others.
constexpr size_t kMostMembers = 2048;
constexpr size_t kMostShownBytes = 64;  // of a client's word in a message

bool is_listed(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool wants_nothing(const ordered_json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_structured() && value.empty());
}

}  // namespace

std::optional<ApiError> pass_fields(const FieldRules& rules, const ordered_json& from,
                                    ordered_json& to, std::string_view prefix) {
  for (const auto& [name, value] : from.items()) {
    if (value.is_null() || is_listed(rules.read, name) || is_listed(rules.harmless, name)) continue;
    if (is_listed(rules.passed, name)) {
      to[name] = value;
      continue;
    }
    const std::string param = fmt::format("{}{}", prefix, name.substr(0, kMostShownBytes));
    if (is_listed(rules.unsupported, name)) {
      if (wants_nothing(value)) continue;
      return ApiError{.message = fmt::format("'{}' is not supported by this server", param),
                      .param = param,
                      .code = "unsupported_parameter"};
    }
    std::vector<std::string> known(rules.read.begin(), rules.read.end());
    known.insert(known.end(), rules.passed.begin(), rules.passed.end());
    return ApiError{.message = fmt::format("'{}' is not a known field{}", param,
                                           did_you_mean(near_words(name, known, 1))),
                    .param = param,
                    .code = "unknown_parameter"};
  }
  return std::nullopt;
}

std::variant<ordered_json, ApiError> parse_ordered_body(std::string_view body) {
  if (const auto error = check_json_shape(body)) return *error;
  if (json_shape(body).widest >= kMostMembers)
    return ApiError{
        .message = fmt::format("the body has an object of more than {} members", kMostMembers)};
  ordered_json object = ordered_json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return not_json(body);
  if (!object.is_object()) return ApiError{.message = "the body must be a JSON object"};
  return object;
}

const ordered_json* given_field(const ordered_json& object, std::string_view name) {
  const auto place = object.find(name);
  return place == object.end() || place->is_null() ? nullptr : &*place;
}

std::string text_field(const ordered_json& object, std::string_view name) {
  if (!object.is_object()) return {};
  const ordered_json* const field = given_field(object, name);
  return field != nullptr && field->is_string() ? field->get<std::string>() : std::string();
}

ApiError field_error(std::string name, std::string_view what) {
  return {.message = fmt::format("'{}' {}", name, what), .param = std::move(name)};
}

ApiError unsupported_content(std::string name, std::string_view type) {
  return {.message = fmt::format("'{}' is of type '{}', which is not supported by this server",
                                 name, type.substr(0, kMostShownBytes)),
          .param = std::move(name),
          .code = "unsupported_content"};
}

std::optional<ApiError> check_answered(const KnownCallIds& calls, const std::string& id,
                                       std::string name) {
  if (calls.contains(id)) return std::nullopt;
  return field_error(std::move(name), fmt::format("is '{}', which is no call before it",
                                                  id.substr(0, kMostShownBytes)));
}

}  // namespace hearth
