// Grammars that force a reply to be calls of given tools, in a given format, with arguments that
// follow their schemas. They are written in Lark's format, which engine/grammar compiles. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/text/tool_calls/call_format.h"
#include "engine/text/tool_calls/tool.h"

namespace hearth {

// One call of any of the tools or, if `several` and the format allows it, one or more. Empty if
// calls in this format cannot be enforced. `answer`: a JSON schema of what the model may write
// instead of calling; empty: it has to call. REQUIRES: there is a tool.
std::string call_grammar(const CallFormat& format, std::span<const Tool> tools, bool several,
                         std::string_view answer = {});

// The same for the text after format.trigger, once the model has written that by itself. White
// space around a call may be as the model has it. Empty if the format has no trigger.
std::string triggered_call_grammar(const CallFormat& format, std::span<const Tool> tools,
                                   bool several);

// Parts of grammars, for the formats.
// A fixed text.
std::string lark_text(std::string_view text);
// The arguments as a JSON object.
std::string arguments_rule(const Tool& tool);
// {"name": "f", "arguments": {...}}, where the arguments are called `arguments`.
std::string named_object_rule(const Tool& tool, std::string_view arguments);
// Each argument between texts, in the schema's order.
struct ParameterTexts {
  std::string open, before_key, after_key, after_value, close;
};
std::string parameters_rule(const Tool& tool, const ParameterTexts& texts);

}  // namespace hearth
