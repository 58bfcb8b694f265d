#include "tools/server/sampler_fields.h"

#include <limits>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/server/openai_request.h"

namespace hearth {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

GenerationRequest sampling_of(const char* body) {
  GenerationRequest request;
  const auto error = read_sampler_fields(json::parse(body), request);
  EXPECT_FALSE(error) << error->message;
  return request;
}

std::string bad(const char* body) {
  GenerationRequest request;
  const auto error = read_sampler_fields(json::parse(body), request);
  return error ? error->param + ": " + error->message : "";
}

TEST(SamplerFields, HaveTheNamesOfOtherServers) {
  const GenerationRequest request = sampling_of(R"({"typical_p":0.9,"top_n_sigma":1.5,"top_a":0.2,
      "epsilon_cutoff":3,"eta_cutoff":6,"xtc_probability":0.5,"xtc_threshold":0.2,
      "dynatemp_range":0.3,"dynatemp_exponent":2,"smoothing_factor":0.4,"smoothing_curve":1.5,
      "mirostat":2,"mirostat_tau":4,"mirostat_eta":0.2,"dry_multiplier":0.8,"dry_base":1.5,
      "dry_allowed_length":3,"dry_penalty_last_n":64,"dry_sequence_breakers":["\n","x"],
      "repeat_penalty":1.2,"samplers":["dry","top_k","temperature"],"tokens":null})");
  const SamplingOptions& sampling = request.sampling;
  EXPECT_FLOAT_EQ(sampling.typical_p, 0.9f);
  EXPECT_FLOAT_EQ(sampling.top_n_sigma, 1.5f);
  EXPECT_FLOAT_EQ(sampling.top_a, 0.2f);
  EXPECT_FLOAT_EQ(sampling.epsilon_cutoff, 3e-4f);
  EXPECT_FLOAT_EQ(sampling.eta_cutoff, 6e-4f);
  EXPECT_FLOAT_EQ(sampling.xtc_probability, 0.5f);
  EXPECT_FLOAT_EQ(sampling.xtc_threshold, 0.2f);
  EXPECT_FLOAT_EQ(sampling.dynatemp_range, 0.3f);
  EXPECT_FLOAT_EQ(sampling.dynatemp_exponent, 2.0f);
  EXPECT_FLOAT_EQ(sampling.smoothing_factor, 0.4f);
  EXPECT_FLOAT_EQ(sampling.smoothing_curve, 1.5f);
  EXPECT_EQ(sampling.mirostat, 2u);
  EXPECT_FLOAT_EQ(sampling.mirostat_tau, 4.0f);
  EXPECT_FLOAT_EQ(sampling.mirostat_eta, 0.2f);
  EXPECT_FLOAT_EQ(sampling.dry_multiplier, 0.8f);
  EXPECT_FLOAT_EQ(sampling.dry_base, 1.5f);
  EXPECT_FLOAT_EQ(sampling.repetition_penalty, 1.2f);
  EXPECT_EQ(sampling.dry_allowed_length, 3u);
  EXPECT_EQ(sampling.dry_penalty_last_n, 64);
  EXPECT_THAT(request.dry_breakers, ElementsAre("\n", "x"));
  EXPECT_EQ(sampler_order_text(sampling.order), "dry;top_k;temperature");
}

TEST(SamplerFields, OfTextGenerationWebui) {
  const GenerationRequest request = sampling_of(R"({"dynamic_temperature":true,"dynatemp_low":0.5,
      "dynatemp_high":1.5,"mirostat_mode":2,"dry_sequence_breakers":"\"\\n\", \":\"",
      "sampler_priority":"repetition_penalty\ntemperature\nquadratic_sampling\ntop_p"})");
  EXPECT_FLOAT_EQ(request.sampling.temperature, 1.0f);
  EXPECT_FLOAT_EQ(request.sampling.dynatemp_range, 0.5f);
  EXPECT_EQ(request.sampling.mirostat, 2u);
  EXPECT_THAT(request.dry_breakers, ElementsAre("\n", ":"));
  EXPECT_EQ(sampler_order_text(request.sampling.order), "penalties;temperature;smoothing;top_p");
  EXPECT_FLOAT_EQ(
      sampling_of(R"({"dynatemp_low":0.5,"dynatemp_high":1.5})").sampling.dynatemp_range, 0);
}

TEST(SamplerFields, AreRefusedByName) {
  EXPECT_THAT(bad(R"({"typical_p":1.1})"), HasSubstr("typical_p: 'typical_p' must be between"));
  EXPECT_THAT(bad(R"({"top_a":"x"})"), HasSubstr("must be a number"));
  EXPECT_EQ(bad(R"({"repeat_penalty":0})"),
            "repeat_penalty: 'repeat_penalty' must be between 0.01 and 100");
  EXPECT_THAT(bad(R"({"mirostat":1})"), HasSubstr("version 1 is not supported"));
  EXPECT_THAT(bad(R"({"mirostat":1.5})"), HasSubstr("must be an integer"));
  EXPECT_THAT(bad(R"({"dry_allowed_length":0})"), HasSubstr("dry_allowed_length"));
  EXPECT_THAT(bad(R"({"samplers":["top_q"]})"), HasSubstr("no sampler"));
  EXPECT_THAT(bad(R"({"samplers":["top_k","dry"]})"), HasSubstr("out of place"));
  EXPECT_THAT(bad(R"({"samplers":[1]})"), HasSubstr("list of strings"));
  EXPECT_THAT(bad(R"({"dry_sequence_breakers":"x"})"), HasSubstr("list of strings"));
  EXPECT_THAT(bad(R"({"dynamic_temperature":true,"dynatemp_low":2})"), HasSubstr("dynatemp_low"));
}

TEST(SamplerFields, TwoNamesOfASettingMustAgree) {
  EXPECT_EQ(bad(R"({"mirostat":2,"mirostat_mode":0})"),
            "mirostat_mode: 'mirostat_mode' contradicts 'mirostat'");
  EXPECT_EQ(bad(R"({"typical_p":0.5,"typical":0.9})"),
            "typical: 'typical' contradicts 'typical_p'");
  EXPECT_EQ(bad(R"({"repetition_penalty":1.1,"repeat_penalty":1.2})"),
            "repeat_penalty: 'repeat_penalty' contradicts 'repetition_penalty'");
  EXPECT_EQ(bad(R"({"samplers":["top_k"],"sampler_priority":["top_p"]})"),
            "sampler_priority: 'sampler_priority' contradicts 'samplers'");
  const std::string range =
      "dynamic_temperature: 'dynamic_temperature' contradicts 'dynatemp_range'";
  EXPECT_EQ(bad(R"({"dynamic_temperature":true,"dynatemp_high":2,"dynatemp_range":0.3})"), range);
  EXPECT_EQ(bad(R"({"dynamic_temperature":false,"dynatemp_range":0.3})"), range);
  for (const char* same :
       {R"({"mirostat":2,"mirostat_mode":2})", R"({"mirostat":2,"mirostat_mode":null})",
        R"({"typical_p":1,"typical":1.0})", R"({"repetition_penalty":1,"repeat_penalty":1.0})",
        R"({"samplers":"top_k;typ_p","sampler_priority":["top_k","typical"]})",
        R"({"samplers":["top_k"],"sampler_priority":[]})",
        R"({"dynamic_temperature":true,"dynatemp_low":0.2,"dynatemp_high":0.8,
            "dynatemp_range":0.3})",
        R"({"dynamic_temperature":false,"dynatemp_range":0})",
        R"({"dynamic_temperature":true,"dynatemp_range":0.3})", R"({"dynatemp_range":0.3})"})
    EXPECT_EQ(bad(same), "") << same;
}

TEST(SamplerFields, LogitBiasesOfTexts) {
  const EncodeText encode = [](std::string_view text) {
    return text == "hi there" ? std::vector<uint32_t>{8, 9} : std::vector<uint32_t>{};
  };
  const auto read = [&](const char* text, std::vector<LogitBias>& biases) {
    const auto error = read_logit_bias(json::parse(text), 100, encode, biases);
    return error ? error->message : std::string();
  };
  std::vector<LogitBias> biases;
  EXPECT_EQ(read(R"({"5":1.5,"hi there":-2})", biases), "");
  ASSERT_EQ(biases.size(), 3u);
  EXPECT_EQ(biases[0].token, 5u);
  EXPECT_EQ(biases[1].token, 8u);
  EXPECT_EQ(biases[2].bias, -2.0f);
  biases.clear();
  EXPECT_EQ(read(R"([[9,1],["hi there",false]])", biases), "");
  ASSERT_EQ(biases.size(), 2u);
  EXPECT_EQ(biases[0].bias, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(biases[1].token, 8u);
  EXPECT_THAT(read(R"({"100":1})", biases), HasSubstr("'100', which is neither"));
  EXPECT_THAT(read(R"([[100,1]])", biases), HasSubstr("100, which is not a token id"));
  EXPECT_THAT(read(R"({"no tokens":1})", biases), HasSubstr("neither"));
  EXPECT_THAT(read(R"({"5":true})", biases), HasSubstr("or false"));
  EXPECT_THAT(read(R"([5])", biases), HasSubstr("pairs"));
}

TEST(SamplerFields, AreFieldsOfARequest) {
  const auto parsed = parse_api_request(
      ApiKind::kCompletion, R"({"prompt":"x","xtc_probability":0.5,"samplers":["xtc"]})",
      {.vocabulary = 10, .sampling = {}});
  ASSERT_TRUE(std::holds_alternative<ApiRequest>(parsed)) << std::get<ApiError>(parsed).message;
  EXPECT_FLOAT_EQ(std::get<ApiRequest>(parsed).generation.sampling.xtc_probability, 0.5f);
}

}  // namespace
}  // namespace hearth
