// What a chat request says about tools and reasoning, checked and turned into plain data. Pure.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/chat_template.h"
#include "engine/text/tool_calls/tool.h"
#include "tools/server/api_error.h"

namespace hearth {

struct ToolFields {
  enum class Choice {
    kNone,      // the model may not call
    kAuto,      // it decides
    kRequired,  // it has to call one or more of the tools
  };
  std::vector<Tool> tools;  // those it may call: only one if the request names it
  size_t first_tool = 0;    // where the first of them is in the request
  Choice choice = Choice::kAuto;
  bool strict = false;   // a tool asks for arguments that follow its schema
  bool parallel = true;  // it may make several calls in one reply
  // Further variables for the chat template, such as {"enable_thinking": false}; null: none.
  nlohmann::ordered_json template_variables;

  bool may_call() const { return !tools.empty() && choice != Choice::kNone; }
};

// `body` is the text of the request, `fields` the same as JSON.
std::optional<ApiError> read_tool_fields(std::string_view body, const nlohmann::json& fields,
                                         ToolFields& read);
// The calls, the result's call and the reasoning of messages[index]. REQUIRES: check_message() has
// nothing against it.
std::optional<ApiError> read_message_tools(size_t index, const nlohmann::json& message,
                                           ChatMessage& read);
// Results whose call no message before them makes are refused, as OpenAI does.
std::optional<ApiError> check_tool_results(const std::vector<ChatMessage>& messages);
// Gives results the name of the function that they are of, from the call they answer.
void name_tool_results(std::vector<ChatMessage>& messages);

}  // namespace hearth
