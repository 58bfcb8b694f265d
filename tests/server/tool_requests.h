// Chat requests with tools, as tests send and read them.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "tools/server/openai_request.h"

namespace hearth {

inline constexpr const char* kWeatherTool =
    R"("tools":[{"type":"function","function":{"name":"get_weather","description":"Weather.",
    "parameters":{"type":"object","properties":{"unit":{"type":"string"},"city":{"type":"string"}},
    "required":["city"]}}}])";

// The body of a request with one question and these fields.
inline std::string asked(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"Weather in Paris?"}],"temperature":0)" +
         (fields.empty() ? "" : "," + fields) + "}";
}

inline std::variant<ApiRequest, ApiError> parsed(const std::string& body) {
  return parse_api_request(ApiKind::kChat, body, {.vocabulary = 1000});
}

inline ApiRequest parsed_well(const std::string& body) {
  auto request = parsed(body);
  if (const ApiError* error = std::get_if<ApiError>(&request)) {
    ADD_FAILURE() << body << ": " << error->message;
    return {};
  }
  return std::get<ApiRequest>(std::move(request));
}

}  // namespace hearth
