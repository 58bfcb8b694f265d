// What the tests of the APIs that are translated to and from OpenAI's chat completions share: a
// completion with everything in it, the events that it becomes, and servers on a stand-in for the
// device.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/served_stand_in.h"
#include "tools/server/generation_reply.h"

namespace hearth::testing {

// The translated body, or the field that is refused as {"refused": NAME}.
template <class T>
nlohmann::json translated(const std::variant<T, ApiError>& parsed,
                          const nlohmann::ordered_json T::*body) {
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) {
    EXPECT_EQ(error->status, 400);
    EXPECT_FALSE(error->message.empty());
    return {{"refused", error->param}};
  }
  return std::get<T>(parsed).*body;
}

struct Translation {
  std::string from, to;
};

// Chunks of a chat completion with reasoning, text and two calls, cut in pieces.
inline std::vector<nlohmann::json> chunks_with_everything() {
  using nlohmann::json;
  const auto chunk = [](json delta, json finish = nullptr) {
    return json{{"choices", json::array({{{"delta", std::move(delta)},
                                          {"finish_reason", std::move(finish)}}})}};
  };
  const auto call = [&](json entry) { return chunk({{"tool_calls", json::array({entry})}}); };
  return {chunk({{"role", "assistant"}, {"content", ""}}),
          chunk({{"reasoning_content", "Hm"}}),
          chunk({{"reasoning_content", "m."}}),
          chunk({{"content", "Let me"}}),
          chunk({{"content", " look."}}),
          call({{"index", 0}, {"id", "c1"}, {"function", {{"name", "f"}, {"arguments", ""}}}}),
          call({{"index", 0}, {"function", {{"arguments", "{\"a\""}}}}),
          call({{"index", 0}, {"function", {{"arguments", ":1}"}}}}),
          call({{"index", 1}, {"id", "c2"}, {"function", {{"name", "g"}, {"arguments", ""}}}}),
          chunk(json::object(), "tool_calls")};
}
inline const nlohmann::json kWholeCompletion = {
    {"choices",
     nlohmann::json::array(
         {{{"finish_reason", "tool_calls"},
           {"message",
            {{"role", "assistant"},
             {"reasoning_content", "Hmm."},
             {"content", "Let me look."},
             {"tool_calls",
              nlohmann::json::array({{{"id", "c1"},
                                      {"type", "function"},
                                      {"function", {{"name", "f"}, {"arguments", "{\"a\":1}"}}}},
                                     {{"id", "c2"},
                                      {"type", "function"},
                                      {"function", {{"name", "g"}, {"arguments", ""}}}}})}}}}})}};

inline std::vector<nlohmann::json> lines_of(const std::string& text,
                                            const std::string& prefix = "data: ") {
  std::vector<nlohmann::json> events;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(prefix))
      events.push_back(nlohmann::json::parse(line.substr(prefix.size())));
  return events;
}
inline std::vector<std::string> types_of(const std::vector<nlohmann::json>& events) {
  std::vector<std::string> types;
  for (const nlohmann::json& event : events) types.push_back(event["type"]);
  return types;
}
inline std::string run_stream(ReplyAdapter& reply, const std::vector<nlohmann::json>& chunks,
                              const GenerationEnd& end) {
  reply.start(end.prompt_tokens);
  std::string text;
  for (const nlohmann::json& chunk : chunks) text += reply.chunk(chunk);
  return text + reply.end(end);
}
inline const GenerationEnd kEnd{
    .reason = FinishReason::kStop,
    .prompt_tokens = 9,
    .cached_tokens = 4,
    .generated_tokens = 20,
    .times = {.admitted = 1, .first_token = 3, .last_token = 7, .finished = 8}};

// A server whose every answer is the same text.
class ServedApis : public ServedStandIn {
 protected:
  std::vector<TokenId> script() const override {
    return tokenizer_->encode("Once upon a time, there was a fox<|end|>",
                              {.add_bos = false, .parse_special = true});
  }
  static constexpr const char* kText = "Once upon a time, there was a fox";
};

// A server whose every answer is text and a call.
class ServedCalls : public ServedStandIn {
 protected:
  uint32_t context() const override { return 2048; }
  std::vector<TokenId> script() const override {
    return tokenizer_->encode(
        "Let me look.\n<tool_call>\n{\"name\": \"look\", \"arguments\": "
        "{\"a\": 1}}\n</tool_call><|end|>",
        {.add_bos = false, .parse_special = true});
  }
};

}  // namespace hearth::testing
