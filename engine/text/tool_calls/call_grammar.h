// Grammars that force a reply to be calls of given tools, in a given format, with arguments that
// follow their schemas. They are written in Lark's format, which engine/grammar compiles. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/text/tool_calls/call_format.h"
#include "engine/text/tool_calls/reasoning.h"
#include "engine/text/tool_calls/tool.h"

namespace hearth {

struct CallGrammarOptions {
  std::span<const Tool> tools;  // REQUIRES: not empty
  bool several = true;          // if the format allows it
  // A JSON schema of what the model may write instead of calling; empty: it has to call.
  std::string_view answer = {};
  std::span<const ControlText> control = {};  // of the model: ReplyStyle::control_texts
  // The model may write reasoning before it calls or answers; null: it may not.
  const ReasoningMarkers* reasoning = nullptr;
};

// One call of any of the tools, or several. Empty if calls of one of them cannot be enforced.
std::string call_grammar(const CallFormat& format, const CallGrammarOptions& options);

// The same for the text after format.trigger, once the model has written that by itself. White
// space around a call may be as the model has it. Empty if the format has no trigger.
std::string triggered_call_grammar(const CallFormat& format, const CallGrammarOptions& options);

// Parts of grammars, for the formats.
// The arguments as a JSON object.
std::string arguments_rule(const Tool& tool);
// {"name": "f", "arguments": {...}}, where the arguments are called `arguments`.
std::string named_object_rule(const Tool& tool, const FixedText& fixed, std::string_view arguments);
// Each argument between texts, in the schema's order.
struct ParameterTexts {
  std::string open, before_key, after_key, after_value, close;
};
std::string parameters_rule(const Tool& tool, const FixedText& fixed, const ParameterTexts& texts);

}  // namespace hearth
