#include "tools/server/prediction.h"

#include <nlohmann/json.hpp>

namespace hearth {

std::optional<std::string> read_prediction(const nlohmann::json& field, std::string& text) {
  const std::string wrong =
      R"(must be {"type": "content", "content": TEXT}, with a string or a list of text parts)";
  if (!field.is_object()) return wrong;
  for (const auto& [name, value] : field.items())
    if (name != "type" && name != "content") return "has the unknown field '" + name + "'";
  const auto type = field.find("type"), content = field.find("content");
  if (type == field.end() || *type != "content" || content == field.end()) return wrong;
  if (content->is_string()) {
    text = content->get<std::string>();
    return std::nullopt;
  }
  if (!content->is_array()) return wrong;
  for (const nlohmann::json& part : *content) {
    const auto piece = part.is_object() ? part.find("text") : part.end();
    if (!part.is_object() || piece == part.end() || !piece->is_string()) return wrong;
    text += piece->get_ref<const std::string&>();
  }
  return std::nullopt;
}

}  // namespace hearth
