#include <gtest/gtest.h>

#include "tools/server/openai_request.h"

namespace hearth {
namespace {

std::variant<ApiRequest, ApiError> guidance_request(const std::string& fields) {
  return parse_api_request(ApiKind::kCompletion, R"({"prompt":"a",)" + fields + "}",
                           {.vocabulary = 100});
}

std::string guidance_refusal(const std::string& fields) {
  const auto request = guidance_request(fields);
  const ApiError* error = std::get_if<ApiError>(&request);
  return error == nullptr ? "accepted" : error->message;
}

TEST(GuidanceFields, AreSpelledAsInTextGenerationWebui) {
  const auto request = guidance_request(R"("guidance_scale":1.5,"negative_prompt":"sad")");
  ASSERT_TRUE(std::holds_alternative<ApiRequest>(request));
  EXPECT_EQ(std::get<ApiRequest>(request).generation.guidance.scale, 1.5f);
  EXPECT_EQ(std::get<ApiRequest>(request).negative_prompt, "sad");
}

TEST(GuidanceFields, AScaleOfOneIsOffWhateverTheNegativePrompt) {
  for (const char* fields :
       {R"("guidance_scale":1,"negative_prompt":"")", R"("negative_prompt":"sad","num_beams":2)"}) {
    const auto request = guidance_request(fields);
    ASSERT_TRUE(std::holds_alternative<ApiRequest>(request)) << guidance_refusal(fields);
    EXPECT_FALSE(std::get<ApiRequest>(request).generation.guidance.guides());
  }
}

TEST(GuidanceFields, WrongValuesAreRefusedByName) {
  EXPECT_EQ(guidance_refusal(R"("guidance_scale":-1)"),
            "'guidance_scale' must be a number between 0 and 100");
  EXPECT_EQ(guidance_refusal(R"("guidance_scale":"2")"),
            "'guidance_scale' must be a number between 0 and 100");
  EXPECT_EQ(guidance_refusal(R"("negative_prompt":[1,2])"), "'negative_prompt' must be a string");
  EXPECT_EQ(guidance_refusal(R"("guidance_scale":2,"num_beams":2)"),
            "'guidance_scale' does not go together with beam search");
  EXPECT_EQ(guidance_refusal(R"("guidance_scale":2,"echo":true,"logprobs":1)"),
            "'guidance_scale' does not go together with 'echo' and 'logprobs'");
}

}  // namespace
}  // namespace hearth
