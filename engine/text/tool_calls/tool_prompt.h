// How a conversation tells a model about tools if its chat template does not. The tools and the way
// to call them go into the system message; calls and their results become plain messages. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/text/chat_template.h"
#include "engine/text/tool_calls/tool.h"

namespace hearth {

// Whether the template puts tools into its prompts: found out by rendering one.
bool shows_tools(const ChatTemplate& chat);

// The system message's text about the tools, in the generic format.
std::string tool_instructions(std::span<const Tool> tools);
// The conversation with that text, and without anything that a template would have to know.
std::vector<ChatMessage> with_tool_instructions(std::span<const ChatMessage> messages,
                                                std::span<const Tool> tools);

}  // namespace hearth
