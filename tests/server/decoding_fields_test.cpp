#include "tools/server/decoding_fields.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/server/openai_request.h"

namespace hearth {
namespace {

std::variant<ApiRequest, ApiError> parsed_decoding(const std::string& fields) {
  ApiContext context{.vocabulary = 100};
  context.sampling = {.temperature = 0.7f, .top_p = 0.9f, .repetition_penalty = 1.1f};
  return parse_api_request(ApiKind::kCompletion, R"({"prompt":"a",)" + fields + "}", context);
}

GenerationRequest accepted(const std::string& fields) {
  const auto request = parsed_decoding(fields);
  if (const ApiError* error = std::get_if<ApiError>(&request)) {
    ADD_FAILURE() << fields << ": " << error->message;
    return {};
  }
  return std::get<ApiRequest>(request).generation;
}

std::string refused(const std::string& fields) {
  const auto request = parsed_decoding(fields);
  const ApiError* error = std::get_if<ApiError>(&request);
  EXPECT_TRUE(error != nullptr) << fields;
  if (error == nullptr) return {};
  EXPECT_EQ(error->status, 400);
  return error->message;
}

TEST(DecodingFields, BeamsHaveSeveralNames) {
  for (const char* fields :
       {R"("beams":4)", R"("num_beams":4)", R"("beams":4,"num_beams":4,"use_beam_search":true)",
        R"("use_beam_search":true,"best_of":4,"n":2)", R"("use_beam_search":true,"n":4)"})
    EXPECT_EQ(accepted(fields).beam.beams, 4u) << fields;
  EXPECT_EQ(accepted(R"("n":4)").beam.beams, 1u);
  EXPECT_EQ(accepted(R"("use_beam_search":false,"n":4,"best_of":4)").beam.beams, 1u);
  EXPECT_EQ(accepted(R"("length_penalty":1,"early_stopping":false)").beam.beams, 1u);
}

TEST(DecodingFields, SaysWhenASearchEnds) {
  const BeamOptions plain = accepted(R"("beams":2)").beam;
  EXPECT_EQ(plain.length_penalty, 1);
  EXPECT_EQ(plain.early_stopping, EarlyStopping::kOff);
  const BeamOptions on = accepted(R"("beams":2,"length_penalty":0.5,"early_stopping":true)").beam;
  EXPECT_EQ(on.length_penalty, 0.5f);
  EXPECT_EQ(on.early_stopping, EarlyStopping::kOn);
  EXPECT_EQ(accepted(R"("beams":2,"early_stopping":"never")").beam.early_stopping,
            EarlyStopping::kNever);
}

TEST(DecodingFields, TheModelsSamplingSettingsDoNotApplyToBeams) {
  const SamplingOptions sampling = accepted(R"("beams":2,"logprobs":3,"temperature":0)").sampling;
  EXPECT_EQ(sampling.temperature, 0);
  EXPECT_EQ(sampling.repetition_penalty, 1);
  EXPECT_EQ(sampling.top_logprobs, 3u);
  EXPECT_EQ(accepted(R"("n":2)").sampling.repetition_penalty, 1.1f);
}

TEST(DecodingFields, BeamsWithStreamingAreRefused) {
  EXPECT_EQ(refused(R"("beams":4,"stream":true)"),
            "'stream' must be false with beam search: its texts are known only at the end");
}

TEST(DecodingFields, MoreTextsThanBeamsAreRefused) {
  EXPECT_EQ(refused(R"("beams":4,"n":5)"), "'n' must not exceed 'beams', which is 4");
  EXPECT_EQ(refused(R"("use_beam_search":true,"best_of":2,"n":3)"),
            "'n' must not exceed 'beams', which is 2");
}

TEST(DecodingFields, ContradictionsAreRefused) {
  EXPECT_EQ(refused(R"("beams":4,"num_beams":3)"), "'num_beams' contradicts 'beams'");
  EXPECT_EQ(refused(R"("beams":4,"use_beam_search":false)"),
            "'use_beam_search' contradicts 'beams'");
  EXPECT_EQ(refused(R"("use_beam_search":true)"),
            "'use_beam_search' needs 'beams', 'best_of' or 'n' to be at least 2");
  EXPECT_EQ(refused(R"("length_penalty":2)"), "'length_penalty' needs 'beams'");
  EXPECT_EQ(refused(R"("early_stopping":true)"), "'early_stopping' needs 'beams'");
  EXPECT_EQ(refused(R"("beams":2,"temperature":0.7)"),
            "'temperature' does not go together with beam search");
  EXPECT_EQ(refused(R"("beams":2,"top_k":40)"), "'top_k' does not go together with beam search");
  EXPECT_EQ(accepted(R"("beams":2,"top_k":-1,"top_p":1)").beam.beams, 2u);
}

// Whatever name a client has for a setting, and however it spells "off".
TEST(DecodingFields, OtherNamesOfSamplersContradictBeams) {
  const std::pair<const char*, const char*> fields[] = {
      {"typical_p", "0.5"},          {"typical", "0.5"},        {"mirostat", "2"},
      {"mirostat_mode", "2"},        {"dynatemp_range", "0.5"}, {"dynamic_temperature", "true"},
      {"repetition_penalty", "1.5"}, {"repeat_penalty", "1.5"},
  };
  for (const auto& [name, value] : fields) {
    const std::string given = fmt::format(R"("{}":{})", name, value);
    accepted(given);
    EXPECT_EQ(refused(R"("beams":2,)" + given),
              fmt::format("'{}' does not go together with beam search", name));
  }
  // An order of samplers that are off asks for nothing.
  for (const std::string& idle :
       {std::string(R"("typical_p":1,"typical":1.0)"), std::string(R"("mirostat":0)"),
        std::string(R"("repetition_penalty":1,"repeat_penalty":1.0)"),
        std::string(R"("mirostat_mode":0,"mirostat_tau":5,"mirostat_eta":0.1)"),
        std::string(R"("dynamic_temperature":false,"dynatemp_low":0.5,"dynatemp_range":0)"),
        std::string(R"("samplers":["top_k"],"sampler_priority":null)")})
    EXPECT_EQ(accepted(R"("beams":2,)" + idle).beam.beams, 2u) << idle;
}

TEST(DecodingFields, ContrastiveDecodingIsSetPerRequest) {
  EXPECT_FALSE(accepted(R"("n":1)").contrast_beta.has_value());
  const GenerationRequest request = accepted(R"("cd_alpha":0.2,"cd_beta":0)");
  EXPECT_EQ(request.contrast_alpha, 0.2f);
  EXPECT_EQ(request.contrast_beta, 0.0f);
  EXPECT_EQ(refused(R"("cd_alpha":2)"), "'cd_alpha' must be a number between 0 and 1");
  EXPECT_EQ(refused(R"("cd_beta":"much")"), "'cd_beta' must be a number between 0 and 100");
}

TEST(DecodingFields, WrongValuesAreRefused) {
  EXPECT_EQ(refused(R"("beams":17)"), "'beams' must be an integer between 1 and 16");
  EXPECT_EQ(refused(R"("num_beams":0)"), "'num_beams' must be an integer between 1 and 16");
  EXPECT_EQ(refused(R"("beams":2.5)"), "'beams' must be an integer between 1 and 16");
  EXPECT_EQ(refused(R"("beams":"4")"), "'beams' must be an integer between 1 and 16");
  EXPECT_EQ(refused(R"("beams":2,"length_penalty":"long")"),
            "'length_penalty' must be a number between -100 and 100");
  EXPECT_EQ(refused(R"("beams":2,"early_stopping":"always")"),
            "'early_stopping' must be true, false or \"never\"");
  EXPECT_EQ(refused(R"("use_beam_search":1)"), "'use_beam_search' must be true or false");
}

}  // namespace
}  // namespace hearth
