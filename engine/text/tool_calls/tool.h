// A function that a model may call, and a call as a conversation has it. Plain data.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

struct Tool {
  std::string name;
  std::string description;
  nlohmann::ordered_json parameters;  // a JSON schema; null: the function takes none
};

// How formats that write arguments without quotes have to read one.
enum class ArgumentKind {
  kText,    // a string, whatever it looks like
  kJson,    // a number, a list, ...
  kEither,  // the schema allows both, or does not say
};
ArgumentKind argument_kind(std::span<const Tool> tools, std::string_view function,
                           std::string_view argument);

// Null if there is none of this name.
const Tool* find_tool(std::span<const Tool> tools, std::string_view name);

// A list of tools in OpenAI's form, as chat templates expect them.
nlohmann::ordered_json tools_json(std::span<const Tool> tools);

}  // namespace hearth
