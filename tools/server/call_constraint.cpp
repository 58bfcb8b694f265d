#include "tools/server/call_constraint.h"

#include <fmt/format.h>

#include "engine/text/tool_calls/call_grammar.h"

namespace hearth {
namespace {

using OutputKind = StructuredOutput::Kind;

// Models were trained to write a blank after commas and colons. More than one is never of use.
StructuredOutput grammar_of(std::string text, std::string field = "tools") {
  return {.kind = OutputKind::kGrammar,
          .text = std::move(text),
          .single_blanks = true,
          .field = std::move(field)};
}

// The schema that an answer without calls follows; empty if it is not a schema that says so.
std::string answer_schema(const StructuredOutput& output) {
  if (output.kind == OutputKind::kJsonSchema) return output.text;
  return output.kind == OutputKind::kJsonObject ? R"({"type": "object"})" : "";
}

}  // namespace

std::optional<ApiError> constrain_calls(const ReplyStyle& style, ApiRequest& request) {
  const ToolFields& fields = request.tools;
  if (!fields.may_call()) return std::nullopt;
  const CallFormat& format = *style.format.calls;
  CallGrammarOptions options{.tools = fields.tools,
                             .several = fields.parallel,
                             .control = style.control_texts,
                             .reasoning = style.format.reasoning};
  if (fields.choice == ToolFields::Choice::kRequired) {
    request.structured = grammar_of(call_grammar(format, options));
    if (!request.structured.text.empty()) return std::nullopt;
    constexpr std::string_view kCannot =
        "'tool_choice' can be 'none' or 'auto': calls of these tools cannot be enforced in this "
        "model's format, {}";
    return ApiError{.message = fmt::format(kCannot, format.name),
                    .param = "tool_choice",
                    .code = "unsupported_parameter"};
  }
  if (request.structured.kind != OutputKind::kNone) {
    const std::string schema = answer_schema(request.structured);
    options.answer = schema;
    const std::string grammar = schema.empty() ? "" : call_grammar(format, options);
    if (grammar.empty())
      return ApiError{.message = fmt::format("'{}' cannot be used together with 'tools'",
                                             request.structured.field),
                      .param = request.structured.field,
                      .code = "unsupported_parameter"};
    request.structured = grammar_of(grammar, request.structured.field);
    return std::nullopt;
  }
  request.structured = grammar_of(triggered_call_grammar(format, options));
  if (request.structured.text.empty()) {
    request.structured = {};
    return std::nullopt;
  }
  request.generation.grammar_after = format.trigger;
  request.generation.grammar_opens_text = format.trigger_opens_call;
  request.generation.grammar_tag = format.trigger_tag;
  if (const ReasoningMarkers* reasoning = style.format.reasoning)
    request.generation.grammar_reasoning = {.open = std::string(reasoning->open),
                                            .close = std::string(reasoning->close)};
  request.grammar_is_optional = !fields.strict;
  return std::nullopt;
}

ApiError call_grammar_error(const ApiRequest& request, const Error& error) {
  const ToolFields& fields = request.tools;
  if (!fields.may_call()) return structured_error(request.structured, error);
  for (size_t i = 0; i < fields.tools.size(); ++i) {
    StructuredOutput alone{
        .kind = OutputKind::kJsonSchema,
        .text = fields.tools[i].parameters.dump(),
        .field = fmt::format("tools[{}].function.parameters", fields.first_tool + i)};
    if (fields.tools[i].parameters.is_null()) continue;
    const auto compiled = compile_structured(alone);
    if (!compiled.ok()) return structured_error(alone, compiled.error());
  }
  // The grammar around the schemas is ours, and so is its notation.
  constexpr std::string_view kNotation = "%json: ";
  Error plain = error;
  if (plain.message.starts_with(kNotation)) plain.message.erase(0, kNotation.size());
  return structured_error(request.structured, plain);
}

}  // namespace hearth
