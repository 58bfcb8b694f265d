// Hints for users who type what llama.cpp, Ollama or vLLM would accept.
#pragma once

#include <optional>
#include <string_view>

namespace hearth {

// What Hearth offers instead of an option of those programs: one sentence without a full stop.
// Nothing for any other option.
std::optional<std::string_view> foreign_option_hint(std::string_view option);

// The same for a command.
std::optional<std::string_view> foreign_command_hint(std::string_view command);

}  // namespace hearth
