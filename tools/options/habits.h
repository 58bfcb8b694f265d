// What people type who come from llama.cpp, Ollama or vLLM, and what to tell them.
#pragma once

#include <optional>
#include <string_view>

namespace hearth {

// About an option that another program has: one sentence without a full stop. Nothing for an option
// that is not known from elsewhere.
std::optional<std::string_view> foreign_option_hint(std::string_view option);

// The same about a command.
std::optional<std::string_view> foreign_command_hint(std::string_view command);

}  // namespace hearth
