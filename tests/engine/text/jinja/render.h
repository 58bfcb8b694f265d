// Renders templates in tests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/template.h"

namespace hearth::jinja::testing {

using Json = nlohmann::ordered_json;

inline Result<Rendering> render(std::string_view source, const Json& variables = Json::object(),
                                const RenderOptions& options = {}) {
  auto parsed = Template::parse(source);
  if (!parsed.ok()) return parsed.error();
  std::vector<Variable> given;
  for (const auto& [name, value] : variables.items()) given.push_back({name, &value});
  return parsed->render(given, options);
}

// The text, or "!! " and the error.
inline std::string text_of(std::string_view source, const Json& variables = Json::object(),
                           const RenderOptions& options = {}) {
  const auto rendering = render(source, variables, options);
  return rendering.ok() ? rendering->text : "!! " + rendering.error().message;
}

inline std::string repeated(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

}  // namespace hearth::jinja::testing
