#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tools/server/openai_request.h"

namespace hearth {
namespace {

std::variant<ApiRequest, ApiError> searching_request(const std::string& fields) {
  ApiContext context{.vocabulary = 100};
  context.sampling = {.temperature = 0.7f, .top_k = 40};
  return parse_api_request(ApiKind::kCompletion, R"({"prompt":"a",)" + fields + "}", context);
}

std::string search_refusal(const std::string& fields) {
  const auto request = searching_request(fields);
  const ApiError* error = std::get_if<ApiError>(&request);
  if (error == nullptr) return "accepted";
  EXPECT_EQ(error->status, 400);
  return error->message;
}

TEST(ContrastiveSearchFields, NeedAPenaltyAndTopK) {
  const auto request = searching_request(R"("penalty_alpha":0.6,"top_k":4,"stream":true)");
  ASSERT_TRUE(std::holds_alternative<ApiRequest>(request));
  const GenerationRequest& generation = std::get<ApiRequest>(request).generation;
  EXPECT_EQ(generation.contrastive_search.alpha, 0.6f);
  EXPECT_EQ(generation.contrastive_search.top_k, 4u);
  const std::string needs = "'penalty_alpha' needs 'top_k' between 2 and 20";
  EXPECT_EQ(search_refusal(R"("penalty_alpha":0.6)"), needs) << "the model's own does not count";
  EXPECT_EQ(search_refusal(R"("penalty_alpha":0.6,"top_k":1)"), needs);
  EXPECT_EQ(search_refusal(R"("penalty_alpha":0.6,"top_k":21)"), needs);
}

TEST(ContrastiveSearchFields, ZeroIsOff) {
  const auto request = searching_request(R"("penalty_alpha":0,"temperature":1)");
  ASSERT_TRUE(std::holds_alternative<ApiRequest>(request));
  EXPECT_FALSE(std::get<ApiRequest>(request).generation.contrastive_search.searches());
}

TEST(ContrastiveSearchFields, ContradictionsAreRefusedByName) {
  const auto with = [](const std::string& fields) {
    return search_refusal(R"("penalty_alpha":0.6,"top_k":4,)" + fields);
  };
  EXPECT_EQ(with(R"("temperature":0,"top_p":1,"repetition_penalty":1.2)"), "accepted");
  EXPECT_EQ(with(R"("temperature":0.8)"),
            "'temperature' does not go together with 'penalty_alpha'");
  EXPECT_EQ(with(R"("top_p":0.9)"), "'top_p' does not go together with 'penalty_alpha'");
  for (const char* name : {"mirostat", "mirostat_mode"})
    EXPECT_EQ(with(fmt::format(R"("{}":2)", name)),
              fmt::format("'{}' does not go together with 'penalty_alpha'", name));
  EXPECT_EQ(with(R"("typical":0.5)"), "'typical' does not go together with 'penalty_alpha'");
  EXPECT_EQ(with(R"("dynamic_temperature":true)"),
            "'dynamic_temperature' does not go together with 'penalty_alpha'");
  EXPECT_EQ(
      with(R"("mirostat_mode":0,"typical":1,"dynamic_temperature":false,"samplers":["top_p"])"),
      "accepted");
  EXPECT_EQ(with(R"("num_beams":2)"), "'penalty_alpha' does not go together with beam search");
  EXPECT_EQ(with(R"("guidance_scale":2)"),
            "'guidance_scale' does not go together with 'penalty_alpha'");
  EXPECT_EQ(with(R"("banned_strings":["x"])"),
            "'banned_strings' does not go together with 'penalty_alpha'");
  EXPECT_EQ(search_refusal(R"("penalty_alpha":2,"top_k":4)"),
            "'penalty_alpha' must be a number between 0 and 1");
}

}  // namespace
}  // namespace hearth
