#include "engine/sampling_defaults.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/sampling/sampler.h"
#include "tests/engine/weights/model_files.h"

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Metadata metadata(std::initializer_list<std::pair<const char*, MetadataValue>> values) {
  Metadata metadata;
  for (const auto& [key, value] : values)
    metadata.set(std::string("general.sampling.") + key, value);
  return metadata;
}

TEST(SamplingDefaults, AreHearthsForAModelThatSaysNothing) {
  const SamplingDefaults defaults = sampling_defaults({});
  EXPECT_EQ(defaults.options.temperature, 0.7f);
  EXPECT_EQ(defaults.options.min_p, 0.05f);
  EXPECT_EQ(defaults.options.top_k, 0u);
  EXPECT_EQ(defaults.options.top_p, 1.0f);
  EXPECT_EQ(defaults.options.repetition_penalty, 1.0f);
  EXPECT_THAT(defaults.from_model, IsEmpty());
  EXPECT_THAT(defaults.ignored, IsEmpty());
}

TEST(SamplingDefaults, AreTheModelsOwn) {
  const SamplingDefaults defaults = sampling_defaults(metadata({{"temp", 0.6},
                                                                {"top_k", uint64_t{20}},
                                                                {"top_p", 0.8},
                                                                {"min_p", 0.01},
                                                                {"penalty_repeat", 1.05}}));
  EXPECT_EQ(defaults.options.temperature, 0.6f);
  EXPECT_EQ(defaults.options.top_k, 20u);
  EXPECT_EQ(defaults.options.top_p, 0.8f);
  EXPECT_EQ(defaults.options.min_p, 0.01f);
  EXPECT_EQ(defaults.options.repetition_penalty, 1.05f);
  EXPECT_THAT(defaults.from_model,
              ElementsAre("temperature", "top_k", "top_p", "min_p", "repetition_penalty"));
  EXPECT_THAT(defaults.ignored, IsEmpty());
}

// Gemma 3 gives top_k and top_p, and means a temperature of 1.
TEST(SamplingDefaults, OfAModelAreNotMixedWithHearths) {
  const SamplingDefaults filters =
      sampling_defaults(metadata({{"top_k", uint64_t{64}}, {"top_p", 0.95}}));
  EXPECT_EQ(filters.options.temperature, 1.0f);
  EXPECT_EQ(filters.options.min_p, 0.0f);
  EXPECT_EQ(filters.options.top_k, 64u);
  const SamplingDefaults temperature = sampling_defaults(metadata({{"temp", 0.6}}));
  EXPECT_EQ(temperature.options.temperature, 0.6f);
  EXPECT_EQ(temperature.options.min_p, 0.0f);
}

TEST(SamplingDefaults, KeepHearthsTemperatureBesideAModelsPenalty) {
  const SamplingDefaults defaults = sampling_defaults(metadata({{"penalty_repeat", 1.1}}));
  EXPECT_EQ(defaults.options.temperature, 0.7f);
  EXPECT_EQ(defaults.options.min_p, 0.05f);
  EXPECT_EQ(defaults.options.repetition_penalty, 1.1f);
  EXPECT_THAT(defaults.from_model, ElementsAre("repetition_penalty"));
}

TEST(SamplingDefaults, AreGreedyForAModelThatIsNotToBeSampled) {
  const SamplingDefaults alone = sampling_defaults(metadata({{"do_sample", false}}));
  EXPECT_EQ(alone.options.temperature, 0.0f);
  EXPECT_EQ(alone.options.min_p, 0.05f) << "for a user who sets a temperature";
  EXPECT_THAT(alone.from_model, ElementsAre("temperature"));
  const SamplingDefaults both = sampling_defaults(metadata({{"do_sample", false}, {"temp", 0.9}}));
  EXPECT_EQ(both.options.temperature, 0.0f);
  EXPECT_EQ(sampling_defaults(metadata({{"do_sample", true}})).options.temperature, 0.7f);
}

TEST(SamplingDefaults, IgnoreValuesThatMakeNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const std::pair<const char*, MetadataValue> cases[] = {
      {"temp", nan},
      {"temp", infinity},
      {"temp", -0.1},
      {"temp", 1e30},
      {"temp", std::string("0.7")},
      {"temp", true},
      {"temp", std::vector<double>{0.7}},
      {"top_k", -1.0},
      {"top_k", int64_t{-40}},
      {"top_k", 1.5},
      {"top_k", uint64_t{1} << 40},
      {"top_k", std::numeric_limits<uint64_t>::max()},
      {"top_k", std::string("many")},
      {"top_p", 1.5},
      {"top_p", nan},
      {"min_p", -1.0},
      {"min_p", false},
      {"penalty_repeat", 0.0},
      {"penalty_repeat", 1e9},
      {"do_sample", std::string("no")},
      {"do_sample", uint64_t{0}},
  };
  for (const auto& [key, value] : cases) {
    const SamplingDefaults defaults = sampling_defaults(metadata({{key, value}}));
    EXPECT_EQ(defaults.options.temperature, 0.7f) << key;
    EXPECT_EQ(defaults.options.min_p, 0.05f) << key;
    EXPECT_EQ(defaults.options.top_k, 0u) << key;
    EXPECT_EQ(defaults.options.top_p, 1.0f) << key;
    EXPECT_EQ(defaults.options.repetition_penalty, 1.0f) << key;
    EXPECT_THAT(defaults.from_model, IsEmpty()) << key;
    EXPECT_THAT(defaults.ignored, HasSubstr(", not ")) << key;
    EXPECT_TRUE(make_sampling_row(defaults.options, {}).ok()) << key;
  }
}

TEST(SamplingDefaults, KeepGoodValuesBesideBadOnes) {
  const SamplingDefaults defaults = sampling_defaults(
      metadata({{"temp", -1.0}, {"top_k", uint64_t{40}}, {"top_p", std::string("a\nb")}}));
  EXPECT_EQ(defaults.options.top_k, 40u);
  EXPECT_THAT(defaults.from_model, ElementsAre("top_k"));
  EXPECT_EQ(defaults.ignored,
            "temperature is -1, not a number from 0 to 100; "
            "top_p is 'a\\x0ab', not a number from 0 to 1");
}

TEST(SamplingDefaults, ComeFromAFileOfEitherKind) {
  const test::TemporaryFolder folder;
  folder.write("config.json", R"({"model_type": "llama", "num_hidden_layers": 1,
      "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 8, "vocab_size": 100,
      "max_position_embeddings": 512, "rms_norm_eps": 1e-5})");
  const auto read = [&](std::string_view generation_config) {
    folder.write("generation_config.json", generation_config);
    const auto file = ModelFile::open(folder.path());
    EXPECT_TRUE(file.ok()) << file.error().message;
    return file.ok() ? sampling_defaults((*file)->metadata()) : SamplingDefaults();
  };
  const SamplingDefaults qwen = read(R"({"do_sample": true, "temperature": 0.6, "top_k": 20,
      "top_p": 0.95, "min_p": null, "repetition_penalty": 1.05, "eos_token_id": 2})");
  EXPECT_EQ(qwen.options.temperature, 0.6f);
  EXPECT_EQ(qwen.options.top_k, 20u);
  EXPECT_EQ(qwen.options.top_p, 0.95f);
  EXPECT_EQ(qwen.options.min_p, 0.0f);
  EXPECT_EQ(qwen.options.repetition_penalty, 1.05f);
  EXPECT_THAT(qwen.ignored, IsEmpty());
  EXPECT_EQ(read(R"({"do_sample": false, "temperature": 0.9})").options.temperature, 0.0f);
  EXPECT_EQ(read(R"({"eos_token_id": 2})").options.temperature, 0.7f);

  const SamplingDefaults hostile = read(R"({"temperature": [0.7], "top_k": {"a": 1},
      "top_p": "high", "min_p": -1, "repetition_penalty": 1e300, "do_sample": "maybe"})");
  EXPECT_EQ(hostile.options.temperature, 0.7f);
  EXPECT_EQ(hostile.options.min_p, 0.05f);
  EXPECT_THAT(hostile.from_model, IsEmpty());
  for (const char* name :
       {"temperature", "top_k", "top_p", "min_p", "repetition_penalty", "do_sample"})
    EXPECT_THAT(hostile.ignored, HasSubstr(std::string(name) + " is "));
}

}  // namespace
}  // namespace hearth
