#include "engine/text/tool_calls/call_grammar.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hearth {
namespace {

using Json = nlohmann::ordered_json;

// A schema that says what its arguments are named, whatever the client wrote.
Json schema_of(const Tool& tool) {
  Json schema = tool.parameters.is_object() ? tool.parameters : Json::object();
  if (!schema.contains("type")) schema["type"] = "object";
  return schema;
}

std::string json_rule(const Json& schema) { return "%json " + schema.dump(); }

// A string that is not quoted ends where the text after it begins.
std::string text_value_rule(const Json& schema, const std::string& after) {
  const auto values = schema.find("enum");
  if (values == schema.end() || !values->is_array() || values->empty()) {
    std::string end;
    for (const char c : after)
      if (c != '\n') end += (c == '/' ? "\\" : "") + std::string(1, c);
    return fmt::format("/(?![\\s\\S]*{})[\\s\\S]*/", end);
  }
  std::string rule;
  for (const Json& value : *values)
    rule += (rule.empty() ? "(" : " | ") + lark_text(value.get<std::string>());
  return rule + ")";
}

// The argument's schema on its own, with the definitions that it may refer to.
Json argument_schema(const Json& schema, const Json& argument) {
  Json alone = argument.is_object() ? argument : Json::object();
  for (const char* const name : {"$defs", "definitions"})
    if (schema.contains(name) && !alone.contains(name)) alone[name] = schema[name];
  return alone;
}

// A fixed text with any white space where it has a line break.
std::string loose_text(std::string_view text) {
  std::string rule, fixed;
  const auto flush = [&] {
    if (!fixed.empty()) rule += lark_text(std::exchange(fixed, {})) + " ";
  };
  for (const char c : text) {
    if (c != '\n') {
      fixed += c;
      continue;
    }
    flush();
    rule += "/[ \\n]{0,4}/ ";
  }
  flush();
  return rule;
}

// What stands around calls, in Lark's format.
struct CallsText {
  std::string open, between, close;
};

std::string calls_rule(const CallsText& texts, bool several) {
  const std::string more = several ? fmt::format(" ({} call)*", texts.between) : "";
  return fmt::format("{} call{} {}", texts.open, more, texts.close);
}

std::string tool_rules(const CallFormat& format, std::span<const Tool> tools) {
  std::string rules = "\ncall: ";
  for (std::size_t i = 0; i < tools.size(); ++i)
    rules += fmt::format("{}call_{}", i == 0 ? "" : " | ", i);
  for (std::size_t i = 0; i < tools.size(); ++i)
    rules += fmt::format("\ncall_{}: {}", i, format.call_rule(tools[i]));
  return rules + "\n";
}

}  // namespace

std::string lark_text(std::string_view text) { return Json(text).dump(); }

std::string arguments_rule(const Tool& tool) { return json_rule(schema_of(tool)); }

std::string named_object_rule(const Tool& tool, std::string_view arguments) {
  const std::string begin =
      fmt::format("{{\"name\": {}, \"{}\": ", Json(tool.name).dump(), arguments);
  return lark_text(begin) + " " + arguments_rule(tool) + " \"}\"";
}

std::string parameters_rule(const Tool& tool, const ParameterTexts& texts) {
  const Json schema = schema_of(tool);
  std::string rule = lark_text(texts.open);
  const Json properties = schema.value("properties", Json::object());
  const Json required = schema.value("required", Json::array());
  for (const auto& [name, argument] : properties.items()) {
    const bool text = argument_kind(std::span(&tool, 1), tool.name, name) == ArgumentKind::kText;
    const std::string one =
        fmt::format("{} {} {}", lark_text(texts.before_key + name + texts.after_key),
                    text ? text_value_rule(argument, texts.after_value)
                         : json_rule(argument_schema(schema, argument)),
                    lark_text(texts.after_value));
    const bool needed = std::ranges::find(required, Json(name)) != required.end();
    rule += needed ? " " + one : fmt::format(" ({})?", one);
  }
  return texts.close.empty() ? rule : rule + " " + lark_text(texts.close);
}

std::string call_grammar(const CallFormat& format, std::span<const Tool> tools, bool several,
                         std::string_view answer) {
  if (format.call_rule == nullptr) return {};
  const auto text = [](std::string_view fixed) {
    return fixed.empty() ? std::string() : lark_text(fixed);
  };
  const bool may_repeat = several && format.several;
  std::string grammar = answer.empty() ? "start: calls" : "start: calls | answer";
  // What a model may put between its reasoning and a call.
  grammar += "\ncalls: /\\n{0,2}/ ";
  grammar += calls_rule({.open = text(format.calls_open),
                         .between = text(format.calls_between),
                         .close = text(format.calls_close)},
                        may_repeat);
  if (!answer.empty()) grammar += fmt::format("\nanswer: %json {}", answer);
  return grammar + tool_rules(format, tools);
}

std::string triggered_call_grammar(const CallFormat& format, std::span<const Tool> tools,
                                   bool several) {
  if (format.call_rule == nullptr || format.trigger.empty()) return {};
  return "start: " +
         calls_rule({.open = loose_text(format.calls_open.substr(format.trigger.size())),
                     .between = loose_text(format.calls_between),
                     .close = loose_text(format.calls_close)},
                    several && format.several) +
         tool_rules(format, tools);
}

}  // namespace hearth
