// Bodies that would take far more memory as a tree than as text are refused before they are parsed.
#include "tools/server/json_body.h"

#include <nlohmann/json.hpp>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string list_of(size_t count, const std::string& item) {
  std::string text = R"({"prompt":[)" + item;
  for (size_t i = 1; i < count; ++i) text += "," + item;
  return text + "]}";
}

std::string refusal(const std::string& body) {
  const auto parsed = parse_json_body(body);
  const ApiError* error = std::get_if<ApiError>(&parsed);
  return error == nullptr ? std::string() : error->message;
}

TEST(JsonBody, EveryValueIsCounted) {
  for (const char* text : {R"({})", R"([])", R"({"a":1,"b":[1,2,{"c":null}],"d":"x,[{"})",
                           R"([[],[],[]])", R"({"a\"b":[1,"\\"]})"}) {
    size_t values = 0;
    const json parsed = json::parse(text, [&](int, json::parse_event_t event, json&) {
      values += event == json::parse_event_t::value || event == json::parse_event_t::object_start ||
                event == json::parse_event_t::array_start;
      return true;
    });
    EXPECT_FALSE(parsed.is_discarded());
    EXPECT_GE(json_shape(text).values, values) << text;
    EXPECT_LE(json_shape(text).values, 2 * values + 1) << text;
  }
  EXPECT_EQ(json_shape(R"({"a":[{"b":[]},[]]})").levels, 4u);
  EXPECT_EQ(json_shape(R"({"a":"[[[[[["})").levels, 1u);
}

// 8 MB of these once became 300 MB.
TEST(JsonBody, NestedListsAreRefusedBeforeTheyAreParsed) {
  EXPECT_THAT(refusal(list_of(2800000, "[]")), HasSubstr("values"));
  EXPECT_THAT(refusal(list_of(1000000, "{}")), HasSubstr("values"));
  EXPECT_THAT(refusal(std::string(1000000, '[')), HasSubstr("levels"));
  EXPECT_EQ(refusal(list_of(200000, "1")), "") << "token ids of a long prompt";
}

TEST(JsonBody, TheCostOfParsingIsBounded) {
  const std::string dense = list_of(100000, "[]"), text = R"({"prompt":")" + std::string(1000, 'a');
  EXPECT_GT(parse_bytes(dense), 100000u * 64);
  EXPECT_LT(parse_bytes(text), 8000u);
  EXPECT_LT(parse_bytes(list_of(2800000, "[]")), 64u << 20);
}

}  // namespace
}  // namespace hearth
