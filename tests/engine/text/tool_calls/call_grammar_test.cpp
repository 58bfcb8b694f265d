// Grammars of calls: they allow what the format's own parser reads as a call with valid arguments,
// and nothing else.
#include "engine/text/tool_calls/call_grammar.h"

#include <gtest/gtest.h>

#include "engine/grammar/matcher.h"
#include "tests/engine/text/tool_calls/replies.h"

namespace hearth {
namespace {

using testing::weather_tools;

bool allows(const std::string& source, std::string_view text) {
  const auto grammar = grammar::Grammar::compile_lark(source);
  EXPECT_TRUE(grammar.ok()) << grammar.error().message << "\n" << source;
  if (!grammar.ok()) return false;
  grammar::Matcher matcher(*grammar, grammar::TokenTrie::create({}, {}));
  return matcher.accept_bytes(text) && matcher.may_end();
}

struct GrammarCase {
  std::string_view format;
  std::string good, two, bad_name, bad_arguments;
};

const std::vector<GrammarCase>& grammar_cases() {
  static const std::string paris = "{\"city\": \"Paris\"}", wrong = "{\"city\": 5}";
  const auto hermes = [](const std::string& name, const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments +
           "}\n</tool_call>";
  };
  const auto object = [](const std::string& name, const std::string& key,
                         const std::string& arguments) {
    return "{\"name\": \"" + name + "\", \"" + key + "\": " + arguments + "}";
  };
  const auto coder = [](const std::string& name, const std::string& key, const std::string& value) {
    return "<tool_call>\n<function=" + name + ">\n<parameter=" + key + ">\n" + value +
           "\n</parameter>\n</function>\n</tool_call>";
  };
  const auto glm = [](const std::string& name, const std::string& key, const std::string& value) {
    return "<tool_call>" + name + "\n<arg_key>" + key + "</arg_key>\n<arg_value>" + value +
           "</arg_value>\n</tool_call>";
  };
  const auto mistral = [](const std::string& name, const std::string& arguments) {
    return "[TOOL_CALLS]" + name + "[ARGS]" + arguments;
  };
  const auto deepseek = [](const std::string& name, const std::string& arguments) {
    return "<｜tool▁call▁begin｜>" + name + "<｜tool▁sep｜>" + arguments + "<｜tool▁call▁end｜>";
  };
  const auto deepseek_list = [](const std::string& calls) {
    return "<｜tool▁calls▁begin｜>" + calls + "<｜tool▁calls▁end｜>";
  };
  const auto harmony = [](const std::string& name, const std::string& arguments) {
    return "<|channel|>commentary to=functions." + name + " <|constrain|>json<|message|>" +
           arguments;
  };
  const auto gemma = [](const std::string& name, const std::string& arguments) {
    return "<|tool_call>call:" + name + arguments + "<tool_call|>";
  };
  static const std::string gemma_paris = "{city:<|\"|>Paris<|\"|>,days:3}";
  static const std::vector<GrammarCase> cases = {
      {"gemma", gemma("get_weather", gemma_paris),
       gemma("get_weather", gemma_paris) + gemma("add", "{a:1,b:2.5}"), gemma("rain", gemma_paris),
       gemma("get_weather", "{city:5}")},
      {"hermes", hermes("get_weather", paris),
       hermes("get_weather", paris) + "\n" + hermes("add", "{\"a\": 1, \"b\": 2}"),
       hermes("rain", paris), hermes("get_weather", wrong)},
      {"generic", hermes("get_weather", paris),
       hermes("get_weather", paris) + "\n" + hermes("get_weather", paris), hermes("", paris),
       hermes("add", "{\"a\": 1}")},
      {"llama3", object("get_weather", "parameters", paris), "",
       object("rain", "parameters", paris), object("get_weather", "parameters", wrong)},
      {"phi", "<|tool_call|>[" + object("get_weather", "arguments", paris) + "]<|/tool_call|>",
       "<|tool_call|>[" + object("get_weather", "arguments", paris) + ", " +
           object("get_weather", "arguments", paris) + "]<|/tool_call|>",
       "<|tool_call|>[]<|/tool_call|>",
       "<|tool_call|>[" + object("get_weather", "arguments", "{}") + "]<|/tool_call|>"},
      {"mistral", mistral("get_weather", paris),
       mistral("get_weather", paris) + mistral("get_weather", paris), mistral("rain", paris),
       mistral("get_weather", wrong)},
      {"mistral-list", "[TOOL_CALLS][" + object("get_weather", "arguments", paris) + "]",
       "[TOOL_CALLS][" + object("get_weather", "arguments", paris) + ", " +
           object("get_weather", "arguments", paris) + "]",
       "[TOOL_CALLS][]", "[TOOL_CALLS][" + object("get_weather", "arguments", "[]") + "]"},
      {"deepseek", deepseek_list(deepseek("get_weather", paris)),
       deepseek_list(deepseek("get_weather", paris) + deepseek("get_weather", paris)),
       deepseek_list(deepseek("rain", paris)), deepseek_list(deepseek("get_weather", wrong))},
      {"qwen-coder", coder("get_weather", "city", "Paris <3"),
       coder("get_weather", "city", "Paris") + "\n" + coder("get_weather", "city", "Oslo"),
       coder("rain", "city", "Paris"), coder("get_weather", "days", "3")},
      {"glm", glm("get_weather", "city", "Paris"),
       glm("get_weather", "city", "Paris") + "\n" + glm("get_weather", "city", "Oslo"),
       glm("rain", "city", "Paris"), glm("add", "a", "one")},
      {"harmony", harmony("get_weather", paris), "", harmony("rain", paris),
       harmony("get_weather", wrong)},
  };
  return cases;
}

TEST(CallGrammar, AllowsValidCallsOnly) {
  for (const GrammarCase& one : grammar_cases()) {
    const CallFormat& format = *find_call_format(one.format);
    const std::string single = call_grammar(format, {.tools = weather_tools(), .several = false});
    const std::string several = call_grammar(format, {.tools = weather_tools()});
    EXPECT_TRUE(allows(single, one.good)) << one.good << "\n" << single;
    EXPECT_TRUE(allows(several, one.good)) << one.good;
    EXPECT_FALSE(allows(several, "Hello")) << one.format;
    EXPECT_FALSE(allows(several, one.bad_name)) << one.bad_name;
    EXPECT_FALSE(allows(several, one.bad_arguments)) << one.bad_arguments;
    if (one.two.empty()) continue;
    EXPECT_TRUE(allows(several, one.two)) << one.two << "\n" << several;
    EXPECT_FALSE(allows(single, one.two)) << one.two;
  }
}

// The format's own parser reads what the grammar allows.
TEST(CallGrammar, AgreesWithTheParser) {
  for (const GrammarCase& one : grammar_cases())
    for (const std::string& text : {one.good, one.two}) {
      if (text.empty()) continue;
      ReplyParser parser(
          {.format = {.calls = find_call_format(one.format)}, .tools = weather_tools()});
      std::size_t calls = 0;
      std::vector<ReplyEvent> events = parser.push(text);
      testing::join(events, parser.finish());
      for (const ReplyEvent& event : events) {
        calls += event.kind == ReplyEvent::Kind::kCallEnd;
        EXPECT_NE(event.kind, ReplyEvent::Kind::kContent) << text << ": " << event.text;
        if (event.kind == ReplyEvent::Kind::kCallEnd) {
          EXPECT_EQ(event.text, "") << text;
        }
      }
      EXPECT_EQ(calls, text == one.two ? 2u : 1u) << text;
    }
}

// OpenAI's API: a function whose parameters are left out takes none.
TEST(CallGrammar, AFunctionWithoutParametersGetsNoArguments) {
  const std::vector<Tool> tools = {{.name = "ping", .description = "", .parameters = {}}};
  const std::string grammar = call_grammar(hermes_format(), {.tools = tools});
  const auto call = [](const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"ping\", \"arguments\": " + arguments + "}\n</tool_call>";
  };
  EXPECT_TRUE(allows(grammar, call("{}")));
  EXPECT_FALSE(allows(grammar, call("{\"host\": 1}")));
}

// After the marker that the model wrote by itself, the rest is a call in any white space.
TEST(CallGrammar, GoesOnAfterTheTrigger) {
  for (const GrammarCase& one : grammar_cases()) {
    const CallFormat& format = *find_call_format(one.format);
    const std::string rest = triggered_call_grammar(format, {.tools = weather_tools()});
    EXPECT_EQ(rest.empty(), format.trigger.empty()) << one.format;
    if (rest.empty()) continue;
    ASSERT_TRUE(one.good.starts_with(format.trigger)) << one.format;
    const std::size_t written = format.trigger_opens_call ? 0 : format.trigger.size();
    EXPECT_TRUE(allows(rest, one.good.substr(written))) << one.good << "\n" << rest;
    if (!one.two.empty()) {
      EXPECT_TRUE(allows(rest, one.two.substr(written))) << one.two << "\n" << rest;
    }
    EXPECT_FALSE(allows(rest, one.bad_arguments.substr(written))) << one.format;
  }
  const std::string hermes = triggered_call_grammar(hermes_format(), {.tools = weather_tools()});
  EXPECT_TRUE(allows(hermes, "{\"name\": \"add\", \"arguments\": {\"a\":1,\"b\":2}}</tool_call>"));
}

TEST(CallGrammar, AllowsAnAnswerInstead) {
  const std::string either = call_grammar(
      hermes_format(),
      {.tools = weather_tools(), .answer = R"({"type": "object", "required": ["x"]})"});
  EXPECT_TRUE(allows(either, "{\"x\": 1}"));
  EXPECT_FALSE(allows(either, "{\"y\": 1}"));
  EXPECT_TRUE(allows(either, grammar_cases()[1].good));
}

TEST(CallGrammar, RefersToDefinitionsOfItsOwnSchema) {
  const std::vector<Tool> tools = {
      {.name = "f",
       .description = "",
       .parameters = nlohmann::ordered_json::parse(
           R"({"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}},
              "required": ["a"], "additionalProperties": false})")}};
  const std::string hermes = call_grammar(hermes_format(), {.tools = tools, .several = false});
  EXPECT_TRUE(
      allows(hermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 5}}\n</tool_call>"));
  EXPECT_FALSE(allows(
      hermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"5\"}}\n</tool_call>"));
  const std::string glm = call_grammar(glm_format(), {.tools = tools, .several = false});
  EXPECT_TRUE(
      allows(glm, "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>5</arg_value>\n</tool_call>"));
  EXPECT_FALSE(
      allows(glm, "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n</tool_call>"));
}

TEST(CallGrammar, ReasoningMayComeFirst) {
  for (const char* const marker : {"<think>", "[THINK]", "<|START_THINKING|>"}) {
    const ReasoningMarkers& markers = *find_reasoning(marker);
    const std::string source =
        call_grammar(hermes_format(), {.tools = weather_tools(), .reasoning = &markers});
    const std::string good = grammar_cases()[1].good;
    const std::string open(markers.open), close(markers.close);
    EXPECT_TRUE(allows(source, good)) << source;
    EXPECT_TRUE(allows(source, open + "a < b [c]? {}\n" + close + "\n\n" + good)) << source;
    EXPECT_FALSE(allows(source, open + "a" + close + "b" + good));
    EXPECT_FALSE(allows(source, open + good));
    EXPECT_FALSE(allows(source, open + close));
    EXPECT_FALSE(allows(source, close + good));
  }
  const ReasoningMarkers& markers = *find_reasoning("<think>");
  const std::vector<ControlText> control = {{"<think>", 7}, {"</think>", 8}};
  const std::string source = call_grammar(
      hermes_format(), {.tools = weather_tools(), .control = control, .reasoning = &markers});
  EXPECT_TRUE(allows(source, grammar::token_reference(7) + "hm </think>" +
                                 grammar::token_reference(8) + grammar_cases()[1].good));
}

// Older models of DeepSeek write the name elsewhere, and newer ones of Mistral an id.
TEST(CallGrammar, AllowsTheFormsOfAFamilysModels) {
  const std::string paris = "{\"city\": \"Paris\"}";
  const std::string deepseek = call_grammar(deepseek_format(), {.tools = weather_tools()});
  EXPECT_TRUE(
      allows(deepseek,
             "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
             "```json\n" +
                 paris + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"));
  const std::string mistral = call_grammar(mistral_format(), {.tools = weather_tools()});
  EXPECT_TRUE(allows(mistral, "[TOOL_CALLS]get_weather[CALL_ID]a1B2c3D4e[ARGS]" + paris));
  const std::string harmony = call_grammar(harmony_format(), {.tools = weather_tools()});
  EXPECT_TRUE(allows(harmony, "<|channel|>commentary to=functions.get_weather<|message|>" + paris));
}

Tool gemma_tool(const char* parameters) {
  return {.name = "f", .parameters = nlohmann::ordered_json::parse(parameters)};
}

TEST(CallGrammar, FollowsSchemasInGemmasNotation) {
  const std::vector<Tool> tools = {gemma_tool(R"({"properties": {
      "a": {"type": "boolean"}, "b": {"enum": ["x", 2]}, "c": {"type": ["integer", "null"]},
      "d": {"type": "array", "items": {"type": "string"}},
      "e": {"type": "object", "properties": {"n": {"type": "number", "minimum": 3}},
            "required": ["n"]}}, "required": ["c"]})")};
  const std::string source = call_grammar(gemma_format(), {.tools = tools});
  const auto call = [&](const std::string& arguments) {
    return allows(source, "<|tool_call>call:f" + arguments + "<tool_call|>");
  };
  EXPECT_TRUE(call("{c:5}"));
  EXPECT_TRUE(call("{a:true,c:null}"));
  EXPECT_TRUE(call("{b:<|\"|>x<|\"|>,c:5,d:[<|\"|>y, \"z\"<|\"|>,<|\"|><|\"|>]}"));
  EXPECT_TRUE(call("{b:2,c:5,d:[],e:{n:3.5}}"));
  EXPECT_FALSE(call("{}"));
  EXPECT_FALSE(call("{a:true}"));
  EXPECT_FALSE(call("{,c:5}"));
  EXPECT_FALSE(call("{c:5,}"));
  EXPECT_FALSE(call("{b:<|\"|>z<|\"|>,c:5}"));
  EXPECT_FALSE(call("{c:5,e:{n:2}}"));
  EXPECT_FALSE(call("{c:5,d:[x]}"));
}

TEST(CallGrammar, IsMissingForSchemasThatGemmasNotationCannotEnforce) {
  for (const char* parameters :
       {R"({"properties": {"a": {"type": "string", "pattern": "^x$"}}})",
        R"({"properties": {"a": {"anyOf": [{"type": "string"}]}}})",
        R"({"properties": {"a b": {"type": "string"}}})", R"({"required": ["a"]})"}) {
    const std::vector<Tool> tools = {gemma_tool(parameters)};
    EXPECT_EQ(call_grammar(gemma_format(), {.tools = tools}), "") << parameters;
  }
}

// Markers that are control tokens come as these tokens, and not inside of strings.
TEST(CallGrammar, NamesControlTokens) {
  const std::vector<ControlText> control = {{"<tool_call>", 7}, {"</tool_call>", 8}};
  const std::string source =
      call_grammar(hermes_format(), {.tools = weather_tools(), .control = control});
  const std::string open = grammar::token_reference(7), close = grammar::token_reference(8);
  const auto call = [](const std::string& before, const std::string& city,
                       const std::string& after) {
    return before + "\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"" + city + "\"}}\n" +
           after;
  };
  EXPECT_TRUE(allows(source, call(open, "Paris", close))) << source;
  EXPECT_TRUE(allows(source, call(open, "<tool_call>", close)));
  EXPECT_FALSE(allows(source, call("<tool_call>", "Paris", close)));
  EXPECT_FALSE(allows(source, call(open, "Paris", "</tool_call>")));
  EXPECT_FALSE(allows(source, call(open, open, close)));
  EXPECT_FALSE(allows(source, call(close, "Paris", close)));
}

}  // namespace
}  // namespace hearth
