// What a chat request says about tools and reasoning: the fields that are read, and the wrong ones
// that are refused by name.
#include "tools/server/tool_fields.h"

#include <nlohmann/json.hpp>
#include <string>

#include <gtest/gtest.h>

#include "tests/server/tool_requests.h"

namespace hearth {
namespace {

TEST(ToolFields, AreRead) {
  const ApiRequest request = parsed_well(asked(std::string(kWeatherTool) + R"(,
      "tool_choice":"auto","parallel_tool_calls":false,"reasoning_effort":"low",
      "chat_template_kwargs":{"enable_thinking":true})"));
  ASSERT_EQ(request.tools.tools.size(), 1u);
  EXPECT_EQ(request.tools.tools[0].name, "get_weather");
  EXPECT_EQ(request.tools.tools[0].description, "Weather.");
  // In the order in which the client wrote them.
  EXPECT_EQ(request.tools.tools[0].parameters["properties"].begin().key(), "unit");
  EXPECT_TRUE(request.tools.may_call());
  EXPECT_FALSE(request.tools.parallel);
  EXPECT_EQ(request.tools.template_variables.dump(),
            R"({"enable_thinking":true,"reasoning_effort":"low"})");
  EXPECT_EQ(parsed_well(asked(R"("reasoning_effort":"none")")).tools.template_variables.dump(),
            R"({"enable_thinking":false,"thinking":false})");
  EXPECT_TRUE(parsed_well(asked("")).tools.template_variables.is_null());
}

TEST(ToolFields, ReadsTheChoice) {
  const auto choice = [](const std::string& value) {
    return parsed_well(asked(std::string(kWeatherTool) + R"(,"tool_choice":)" + value)).tools;
  };
  EXPECT_FALSE(choice(R"("none")").may_call());
  EXPECT_EQ(choice(R"("required")").choice, ToolFields::Choice::kRequired);
  const ToolFields named = choice(R"({"type":"function","function":{"name":"get_weather"}})");
  EXPECT_EQ(named.choice, ToolFields::Choice::kRequired);
  EXPECT_FALSE(named.parallel);
}

TEST(ToolFields, ReadsMessages) {
  const ApiRequest request = parsed_well(R"({"messages":[
      {"role":"user","content":"Weather?"},
      {"role":"assistant","content":null,"reasoning_content":"Hm.","tool_calls":[{"id":"c1",
       "type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"21"},
      {"role":"tool","tool_call_id":"c1","name":"own","content":[{"type":"text","text":"22"}]}]})");
  ASSERT_EQ(request.messages.size(), 4u);
  EXPECT_EQ(request.messages[1].reasoning, "Hm.");
  ASSERT_EQ(request.messages[1].tool_calls.size(), 1u);
  EXPECT_EQ(request.messages[1].tool_calls[0].arguments, R"({"city":"Paris"})");
  EXPECT_EQ(request.messages[2].tool_call_id, "c1");
  EXPECT_EQ(request.messages[2].name, "get_weather");
  EXPECT_EQ(request.messages[3].name, "own");
  EXPECT_EQ(request.messages[3].content, "22");
}

TEST(ToolFields, WrongOnesAreRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"tools", R"("tools":{})"},
      {"tools[0]", R"("tools":[5])"},
      {"tools[0].type", R"("tools":[{"type":"web_search"}])"},
      {"tools[0].function", R"("tools":[{"type":"function"}])"},
      {"tools[0].function.name", R"("tools":[{"type":"function","function":{"name":"a b"}}])"},
      {"tools[0].function.name", R"("tools":[{"type":"function","function":{"name":""}}])"},
      {"tools[0].function.parameters",
       R"("tools":[{"type":"function","function":{"name":"a","parameters":[]}}])"},
      {"tools[1].function.name",
       R"("tools":[{"function":{"name":"a"}},{"function":{"name":"a"}}])"},
      {"tool_choice", R"("tool_choice":"required")"},
      {"tool_choice", R"("tool_choice":"maybe")"},
      {"tool_choice", R"("tool_choice":{"type":"function","function":{"name":"g"}})"},
      {"tool_choice", R"("tool_choice":{"type":"allowed_tools"})"},
      {"parallel_tool_calls", R"("parallel_tool_calls":1)"},
      {"reasoning_effort", R"("reasoning_effort":"huge")"},
      {"chat_template_kwargs", R"("chat_template_kwargs":[1])"},
      {"chat_template_kwargs.messages", R"("chat_template_kwargs":{"messages":[]})"},
  };
  for (const auto& [param, fields] : cases) {
    const auto request = parsed(asked(fields));
    const ApiError* error = std::get_if<ApiError>(&request);
    ASSERT_NE(error, nullptr) << fields;
    EXPECT_EQ(error->param, param) << error->message;
    EXPECT_EQ(error->status, 400);
  }
  const std::pair<const char*, const char*> messages[] = {
      {"messages[0].tool_calls", R"({"role":"user","content":"a","tool_calls":[{}]})"},
      {"messages[0].tool_calls", R"({"role":"assistant","tool_calls":{"a":1}})"},
      {"messages[0].tool_calls[0].function", R"({"role":"assistant","tool_calls":[{"id":"1"}]})"},
      {"messages[0].tool_calls[0].function.name",
       R"({"role":"assistant","tool_calls":[{"function":{}}]})"},
      {"messages[0].tool_calls[0].function.arguments",
       R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]})"},
      {"messages[0].tool_call_id", R"({"role":"tool","tool_call_id":5,"content":"a"})"},
      {"messages[0].content", R"({"role":"tool","tool_call_id":"5"})"},
  };
  for (const auto& [param, message] : messages) {
    const auto request = parsed(R"({"messages":[)" + std::string(message) + "]}");
    const ApiError* error = std::get_if<ApiError>(&request);
    ASSERT_NE(error, nullptr) << message;
    EXPECT_EQ(error->param, param) << error->message;
  }
}

}  // namespace
}  // namespace hearth
