#include "engine/text/tool_calls/call_grammar.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hearth {
namespace {

using Json = nlohmann::ordered_json;

// A schema that says what its arguments are named, whatever the client wrote.
Json schema_of(const Tool& tool) {
  if (!tool.parameters.is_object())  // it takes no arguments
    return {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  Json schema = tool.parameters;
  if (!schema.contains("type")) schema["type"] = "object";
  return schema;
}

std::string json_rule(const Json& schema) { return "%json " + schema.dump(); }

// A string that is not quoted ends where the text after it begins.
std::string text_value_rule(const Json& schema, const FixedText& fixed, const std::string& after) {
  const auto values = schema.find("enum");
  if (values == schema.end() || !values->is_array() || values->empty()) {
    // No text has a control token in it.
    if (fixed.has_control(after)) return "/[\\s\\S]*/";
    std::string end;
    for (const char c : after)
      if (c != '\n') end += (c == '/' ? "\\" : "") + std::string(1, c);
    return fmt::format("/(?![\\s\\S]*{})[\\s\\S]*/", end);
  }
  std::string rule;
  for (const Json& value : *values)
    rule += (rule.empty() ? "(" : " | ") + fixed(value.get<std::string>());
  return rule + ")";
}

// The argument's schema on its own, with the definitions that it may refer to.
Json argument_schema(const Json& schema, const Json& argument) {
  Json alone = argument.is_object() ? argument : Json::object();
  for (const char* const name : {"$defs", "definitions"})
    if (schema.contains(name) && !alone.contains(name)) alone[name] = schema[name];
  return alone;
}

// What stands around calls, in Lark's format.
struct CallsText {
  std::string open, between, close;
};

std::string calls_rule(const CallsText& texts, bool several) {
  const std::string more = several ? fmt::format(" ({} call)*", texts.between) : "";
  return fmt::format("{} call{} {}", texts.open, more, texts.close);
}

// Empty if calls of one of the tools cannot be enforced.
std::string tool_rules(const CallFormat& format, std::span<const Tool> tools,
                       const FixedText& fixed) {
  if (format.call_rule == nullptr) return {};
  std::string names, rules;
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const std::string rule = format.call_rule(tools[i], fixed);
    if (rule.empty()) return {};
    names += fmt::format("{}call_{}", i == 0 ? "" : " | ", i);
    rules += fmt::format("\ncall_{}: {}", i, rule);
  }
  return "\ncall: " + names + rules + "\n";
}

}  // namespace

std::string arguments_rule(const Tool& tool) { return json_rule(schema_of(tool)); }

std::string named_object_rule(const Tool& tool, const FixedText& fixed,
                              std::string_view arguments) {
  const std::string begin =
      fmt::format("{{\"name\": {}, \"{}\": ", Json(tool.name).dump(), arguments);
  return fixed(begin) + " " + arguments_rule(tool) + " \"}\"";
}

std::string parameters_rule(const Tool& tool, const FixedText& fixed, const ParameterTexts& texts) {
  const Json schema = schema_of(tool);
  std::string rule = fixed(texts.open);
  const Json properties = schema.value("properties", Json::object());
  const Json required = schema.value("required", Json::array());
  for (const auto& [name, argument] : properties.items()) {
    const bool text = argument_kind(std::span(&tool, 1), tool.name, name) == ArgumentKind::kText;
    const std::string one =
        fmt::format("{} {} {}", fixed(texts.before_key + name + texts.after_key),
                    text ? text_value_rule(argument, fixed, texts.after_value)
                         : json_rule(argument_schema(schema, argument)),
                    fixed(texts.after_value));
    const bool needed = std::ranges::find(required, Json(name)) != required.end();
    rule += needed ? " " + one : fmt::format(" ({})?", one);
  }
  return texts.close.empty() ? rule : rule + " " + fixed(texts.close);
}

std::string call_grammar(const CallFormat& format, const CallGrammarOptions& options) {
  const FixedText fixed{options.control};
  const std::string rules = tool_rules(format, options.tools, fixed);
  if (rules.empty()) return {};
  std::string grammar = "start: ";
  if (options.reasoning != nullptr)
    grammar += fmt::format("({} {} /[ \\n]{{0,4}}/)? ", fixed(options.reasoning->open),
                           fixed.text_before(options.reasoning->close));
  grammar += options.answer.empty() ? "calls" : "(calls | answer)";
  // What a model may put between its reasoning and a call.
  grammar += "\ncalls: /\\n{0,2}/ ";
  grammar += calls_rule({.open = fixed(format.calls_open),
                         .between = fixed(format.calls_between),
                         .close = fixed(format.calls_close)},
                        options.several && format.several);
  if (!options.answer.empty()) grammar += fmt::format("\nanswer: %json {}", options.answer);
  return grammar + rules;
}

std::string triggered_call_grammar(const CallFormat& format, const CallGrammarOptions& options) {
  const FixedText fixed{options.control};
  const std::string rules = tool_rules(format, options.tools, fixed);
  if (rules.empty() || format.trigger.empty()) return {};
  const size_t written = format.trigger_opens_call ? 0 : format.trigger.size();
  return "start: " +
         calls_rule({.open = fixed.loose(format.calls_open.substr(written)),
                     .between = "/[ \\n]{0,4}/ " + fixed.loose(format.calls_between),
                     .close = fixed.loose(format.calls_close)},
                    options.several && format.several) +
         rules;
}

}  // namespace hearth
