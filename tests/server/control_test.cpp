// POST /control: what a body changes, and which clients may send one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/served_stand_in.h"
#include "tools/server/control_request.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

ControlRequest parsed_control(const std::string& body) {
  auto parsed = parse_control_request(body, Policy{});
  const ApiError* const error = std::get_if<ApiError>(&parsed);
  EXPECT_EQ(error, nullptr) << error->message;
  return error == nullptr ? std::get<ControlRequest>(parsed) : ControlRequest{};
}

std::string control_error(const std::string& body) {
  auto parsed = parse_control_request(body, Policy{});
  const ApiError* const error = std::get_if<ApiError>(&parsed);
  return error == nullptr ? "none" : error->message;
}

TEST(ControlRequestTest, OnlyWhatIsSaidChanges) {
  const ControlRequest nothing = parsed_control("{}");
  EXPECT_FALSE(nothing.paused || nothing.step || nothing.pace || nothing.policy ||
               nothing.sets_limits() || nothing.priority || !nothing.cancelled.empty());
  EXPECT_EQ(parsed_control(R"({"policy":"static"})").policy, named_policy("static"));
  const ControlRequest some = parsed_control(
      R"({"paused":true,"pace":2.5,"limits":{"pool_blocks":9},"cancel":[3,4],
          "priority":{"request":7,"value":-2},"policy":{"layout":"padded"}})");
  EXPECT_EQ(some.paused, true);
  EXPECT_EQ(some.pace, 2.5);
  EXPECT_EQ(some.pool_blocks, 9u);
  EXPECT_FALSE(some.max_sequences);
  EXPECT_EQ(some.cancelled, (std::vector<RequestId>{3, 4}));
  EXPECT_EQ(some.priority->request, 7u);
  EXPECT_EQ(some.priority->value, -2);
  Policy padded;
  ASSERT_FALSE(set_switch(padded, "layout", "padded"));
  EXPECT_EQ(some.policy, padded);
}

TEST(ControlRequestTest, AWrongFieldIsNamed) {
  EXPECT_THAT(control_error(R"({"pause":true})"), HasSubstr("pause"));
  EXPECT_THAT(control_error(R"({"paused":1})"), HasSubstr("'paused' must be true or false"));
  EXPECT_THAT(control_error(R"({"pace":-1})"), HasSubstr("'pace'"));
  EXPECT_THAT(control_error(R"({"policy":"statick"})"), HasSubstr("continuous"));
  EXPECT_THAT(control_error(R"({"policy":{"layout":"round"}})"), HasSubstr("policy.layout"));
  EXPECT_THAT(control_error(R"({"limits":{"context":9}})"), HasSubstr("limits.context"));
  EXPECT_THAT(control_error(R"({"limits":{"pool_blocks":0}})"), HasSubstr("limits.pool_blocks"));
  EXPECT_THAT(control_error(R"({"cancel":3})"), HasSubstr("'cancel'"));
  EXPECT_THAT(control_error(R"({"priority":{"request":1}})"), HasSubstr("'priority'"));
  EXPECT_THAT(control_error("[]"), HasSubstr("object"));
}

class ControlTest : public ServedStandIn {};

TEST_F(ControlTest, IsForbiddenUnlessTheServerAllowsIt) {
  const HttpAnswer refused = post("/control", R"({"paused":true})");
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body, HasSubstr("--control"));
  EXPECT_EQ((*engine_)->state(), EngineState::kRunning);
}

TEST_F(ControlTest, ChangesTheEngineAndShowsItsSettings) {
  serve({.port = 0, .api_keys = {"k"}, .control = true});
  HttpClient nobody(server_->port());
  EXPECT_EQ(nobody.post("/control", R"({"paused":true})").status, 401);
  HttpClient client(server_->port());
  const HttpAnswer changed =
      client.post("/control", R"({"paused":true,"policy":"static","limits":{"max_sequences":3}})",
                  "Authorization: Bearer k\r\n");
  ASSERT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(changed.json()["paused"], true);
  EXPECT_EQ(changed.json()["limits"]["max_sequences"], 3);
  EXPECT_EQ((*engine_)->policy(), *named_policy("static"));
  EXPECT_EQ((*engine_)->state(), EngineState::kPaused);
  (*engine_)->resume();
}

}  // namespace
}  // namespace hearth::testing
