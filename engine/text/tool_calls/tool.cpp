#include "engine/text/tool_calls/tool.h"

#include <algorithm>

namespace hearth {
namespace {

using Json = nlohmann::ordered_json;

ArgumentKind kind_of_types(const Json& types) {
  bool text = false, other = false;
  for (const Json& type : types)
    if (type.is_string()) (type == "string" ? text : other) = true;
  return text == other ? ArgumentKind::kEither : text ? ArgumentKind::kText : ArgumentKind::kJson;
}

ArgumentKind kind_of_values(const Json& values) {
  const auto is_text = [](const Json& value) { return value.is_string(); };
  if (std::ranges::all_of(values, is_text)) return ArgumentKind::kText;
  return std::ranges::any_of(values, is_text) ? ArgumentKind::kEither : ArgumentKind::kJson;
}

}  // namespace

const Tool* find_tool(std::span<const Tool> tools, std::string_view name) {
  const auto place = std::ranges::find(tools, name, &Tool::name);
  return place == tools.end() ? nullptr : &*place;
}

ArgumentKind argument_kind(std::span<const Tool> tools, std::string_view function,
                           std::string_view argument) {
  const Tool* const tool = find_tool(tools, function);
  if (tool == nullptr || !tool->parameters.is_object()) return ArgumentKind::kEither;
  const auto properties = tool->parameters.find("properties");
  if (properties == tool->parameters.end() || !properties->is_object())
    return ArgumentKind::kEither;
  const auto schema = properties->find(argument);
  if (schema == properties->end() || !schema->is_object()) return ArgumentKind::kEither;
  if (const auto type = schema->find("type"); type != schema->end())
    return kind_of_types(type->is_array() ? *type : Json::array({*type}));
  if (const auto values = schema->find("enum"); values != schema->end() && values->is_array())
    return kind_of_values(*values);
  if (const auto value = schema->find("const"); value != schema->end())
    return kind_of_values(Json::array({*value}));
  return ArgumentKind::kEither;
}

Json tools_json(std::span<const Tool> tools) {
  Json list = Json::array();
  for (const Tool& tool : tools) {
    Json function = {{"name", tool.name}};
    if (!tool.description.empty()) function["description"] = tool.description;
    function["parameters"] = tool.parameters.is_null()
                                 ? Json{{"type", "object"}, {"properties", Json::object()}}
                                 : tool.parameters;
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return list;
}

}  // namespace hearth
