// Replies in every format, as the families' chat templates write them, and broken ones. For tests
// and for fuzzing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tool_calls/reply_parser.h"

namespace hearth::testing {

inline const std::vector<Tool>& weather_tools() {
  static const std::vector<Tool> tools = {
      {.name = "get_weather",
       .description = "Current weather of a city.",
       .parameters = {{"type", "object"},
                      {"properties",
                       {{"city", {{"type", "string"}}},
                        {"unit", {{"type", "string"}, {"enum", {"C", "F"}}}},
                        {"days", {{"type", "integer"}}}}},
                      {"required", {"city"}}}},
      {.name = "add",
       .description = "Adds two numbers.",
       .parameters = {{"type", "object"},
                      {"properties", {{"a", {{"type", "number"}}}, {"b", {{"type", "number"}}}}},
                      {"required", {"a", "b"}}}}};
  return tools;
}

struct SampleReply {
  std::string_view format;
  std::string text;
  std::string expected;  // see describe()
};

// A reply in one line: content as it is, R(reasoning), name(arguments), !warning.
inline std::string describe(const std::vector<ReplyEvent>& events) {
  std::string text, open;
  for (const ReplyEvent& event : events) {
    switch (event.kind) {
      case ReplyEvent::Kind::kContent:
        text += event.text;
        break;
      case ReplyEvent::Kind::kReasoning:
        if (open != "R") text += "R(";
        open = "R";
        text += event.text;
        continue;
      case ReplyEvent::Kind::kCallBegin:
        text += (open == "R" ? ")" : "") + event.text + "(";
        open = "call";
        continue;
      case ReplyEvent::Kind::kArguments:
        text += event.text;
        continue;
      case ReplyEvent::Kind::kCallEnd:
        text += ")" + (event.text.empty() ? "" : "!" + event.text);
        open.clear();
        continue;
    }
    // Content after reasoning closes it.
    if (open == "R") {
      text.insert(text.size() - event.text.size(), ")");
      open.clear();
    }
  }
  return text + (open == "R" ? ")" : "");
}

// Neighbouring pieces of text as one, as if the reply had come in one piece.
inline void join(std::vector<ReplyEvent>& events, std::vector<ReplyEvent> more) {
  for (ReplyEvent& event : more) {
    const bool joins =
        !events.empty() && events.back().kind == event.kind && events.back().call == event.call &&
        event.kind != ReplyEvent::Kind::kCallBegin && event.kind != ReplyEvent::Kind::kCallEnd;
    if (joins)
      events.back().text += event.text;
    else
      events.push_back(std::move(event));
  }
}

inline const std::vector<SampleReply>& sample_replies() {
  static const std::string paris = "get_weather({\"city\": \"Paris\"})",
                           oslo = "get_weather({\"city\": \"Oslo\"})";
  static const std::vector<SampleReply> replies = {
      {"hermes",
       "Let me look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
       "\"Paris\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_weather\", "
       "\"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>",
       "Let me look." + paris + oslo},
      // The arguments come first, a marker is inside a string, and text follows.
      {"hermes",
       "<tool_call>{\"arguments\": {\"city\": \"</tool_call>\\\"\"}, \"name\": "
       "\"get_weather\"}</tool_call>\n\nDone.\n",
       "get_weather({\"city\": \"</tool_call>\\\"\"})Done.\n"},
      {"hermes", "<tool_call>{\"name\": \"f\"}</tool_call>", "f({})"},
      {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
       "f({\"a\": 1})"},
      {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": 5, \"id\": 7}</tool_call>",
       "f(5)!the arguments are not a JSON object"},
      // Not JSON: everything up to the closing marker, as it is.
      {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {city: Paris}}</tool_call> So.",
       "f({city: Paris}})!the arguments are not a JSON objectSo."},
      {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x\ny\"}}</tool_call>",
       "f({\"a\": \"x\ny\"})!the arguments are not a JSON object"},
      {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 01}}</tool_call>",
       "f({\"a\": 01}})!the arguments are not a JSON object"},
      {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1, 2",
       "f({\"a\": [1, 2)!the reply ended inside the call"},
      // No calls at all.
      {"hermes", "<tool_call>nonsense</tool_call>", "<tool_call>nonsense</tool_call>"},
      {"hermes", "<tool_call></tool_call>", "<tool_call></tool_call>"},
      {"hermes", "<tool_call>{\"a\": 1}</tool_call>", "<tool_call>{\"a\": 1}</tool_call>"},
      {"hermes", "a <b> <tool_cal", "a <b> <tool_cal"},
      {"hermes", "  text with space around \n", "  text with space around \n"},
      {"hermes", "", ""},

      {"generic",
       "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": -2.5e3}}\n"
       "</tool_call>",
       "add({\"a\": 1, \"b\": -2.5e3})"},

      {"llama3", "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}", paris},
      {"llama3",
       "<|python_tag|>{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}"
       "; {\"name\": \"get_weather\", \"parameters\": {\"city\": \"Oslo\"}}",
       paris + oslo},
      // JSON for the user, which names no tool.
      {"llama3", "{\"name\": \"Ann\", \"age\": 5}", "{\"name\": \"Ann\", \"age\": 5}"},
      {"llama3", "[1, 2]", "[1, 2]"},
      {"llama3", "See {\"name\": \"add\"}", "See {\"name\": \"add\"}"},

      {"phi",
       "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}, "
       "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}]<|/tool_call|>",
       paris + oslo},
      {"phi", "functools[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]",
       paris},
      {"phi", "functools are fine", "functools are fine"},

      {"mistral",
       "Let me look.[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Paris\"}[TOOL_CALLS]"
       "get_weather[ARGS]{\"city\": \"Oslo\"}",
       "Let me look." + paris + oslo},
      {"mistral", "[TOOL_CALLS]get_weather[CALL_ID]call00001[ARGS]{\"city\": \"Paris\"}", paris},
      {"mistral-list",
       "[TOOL_CALLS] [{\"name\": \"get_weather\", \"arguments\": {\"city\": "
       "\"Paris\"}, \"id\": \"call00001\"}, {\"name\": \"get_weather\", "
       "\"arguments\": {\"city\": \"Oslo\"}}]",
       paris + oslo},
      {"mistral", "[TOOL_CALLS]f[ARGS]{broken[TOOL_CALLS]add[ARGS]{\"a\": 1}",
       "f({broken)!the arguments are not a JSON objectadd({\"a\": 1})"},
      {"mistral", "[TOOL_CALLS]", "[TOOL_CALLS]"},
      {"mistral", "[TOOL_CALLS]f", "[TOOL_CALLS]f"},

      {"deepseek",
       "Let me look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
       "{\"city\": \"Paris\"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_weather"
       "<｜tool▁sep｜>{\"city\": \"Oslo\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "Let me look." + paris + oslo},
      {"deepseek",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
       "```json\n{\"city\": \"Paris\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>"
       "function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"Oslo\"}\n```"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       paris + oslo},
      {"deepseek", "<｜tool▁call▁begin｜>f<｜tool▁sep｜><｜tool▁call▁end｜>After", "f({})After"},
      {"deepseek", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>no json<｜tool▁call▁end｜>",
       "f(no json)!the arguments are not a JSON object"},

      {"qwen-coder",
       "Let me look.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n"
       "</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=get_weather>\n"
       "<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
       "Let me look." + paris + oslo},
      {"qwen-coder",
       "<tool_call><function=get_weather><parameter=city>12</parameter>"
       "<parameter=days>\n3\n</parameter><parameter=more>[1, \"a\"]</parameter>"
       "<parameter=text>two\n\"lines\"</parameter></function></tool_call>",
       "get_weather({\"city\": \"12\", \"days\": 3, \"more\": [1, \"a\"], \"text\": "
       "\"two\\n\\\"lines\\\"\"})"},
      {"qwen-coder", "<function=get_weather><parameter=days>many</parameter></function>",
       "get_weather({\"days\": \"many\"})!the argument 'days' is not JSON"},
      {"qwen-coder", "<function=f></function>", "f({})"},
      {"qwen-coder", "<function=get_weather><parameter=city>Par",
       "get_weather({\"city\": \"Par)!the reply ended inside the call"},

      {"glm",
       "Let me look.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris"
       "</arg_value>\n</tool_call>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n"
       "<arg_value>Oslo</arg_value>\n</tool_call>",
       "Let me look." + paris + oslo},
      {"glm",
       "<tool_call>add<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>b</arg_key>"
       "<arg_value>2</arg_value></tool_call>",
       "add({\"a\": 1, \"b\": 2})"},
      {"glm", "<tool_call>add</tool_call>", "add({})"},

      {"gemma",
       "<|tool_call>call:get_weather{city:<|\"|>Paris<|\"|>}<tool_call|><|tool_call>call:"
       "get_weather{city:<|\"|>Oslo<|\"|>}<tool_call|>Let me look.",
       "get_weather({\"city\":\"Paris\"})get_weather({\"city\":\"Oslo\"})Let me look."},
      {"gemma", "<|tool_call>call:f{a:[1,true,{b:<|\"|>x\"{y<|\"|>}],c:word}<tool_call|>",
       "f({\"a\":[1,true,{\"b\":\"x\\\"{y\"}],\"c\":\"word\"})"},
      {"gemma", "<|tool_call>call:f{a:1<tool_call|>",
       "f({\"a\":1)!the arguments are not a JSON object"},
      {"gemma", "<|tool_call>nothing{", "<|tool_call>nothing{"},

      {"harmony",
       "<|channel|>analysis<|message|>I need the weather.<|end|><|start|>assistant"
       "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
       "{\"city\": \"Paris\"}<|call|>",
       "R(I need the weather.)" + paris},
      {"harmony",
       " to=functions.get_weather<|channel|>commentary json<|message|>{\"city\": "
       "\"Paris\"}",
       paris},
      {"harmony",
       "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final"
       "<|message|>51 <b>",
       "R(Hm.)51 <b>"},
      {"harmony",
       "<|channel|>commentary<|message|>First I look.<|end|><|start|>assistant to="
       "functions.add<|channel|>commentary<|message|>1 + 2<|call|>",
       "First I look.add(1 + 2)!the arguments are not a JSON object"},
      {"harmony", "Plain text", "Plain text"},
      {"harmony", "<|channel|>fin", "<|channel|>fin"},
  };
  return replies;
}

inline const ReasoningMarkers kThink{"<think>", "</think>"};

}  // namespace hearth::testing
