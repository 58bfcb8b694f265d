#include "tools/chat/chat_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/sampling_defaults.h"

namespace hearth {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string change(ChatSettings& settings, std::string_view assignment) {
  const auto line = change_setting(settings, kHearthSampling, assignment);
  return line.ok() ? *line : "error: " + line.error().message;
}

TEST(ChatSettings, TakeTheNamesOfOptionsInAnySpelling) {
  for (const char* spelling :
       {"temp 0.5", "temp=0.5", "--temp 0.5", "--temp=0.5", "  temp  =  0.5 ", "temperature 0.5"}) {
    ChatSettings settings;
    EXPECT_EQ(change(settings, spelling), "temp = 0.5");
    EXPECT_EQ(settings.sampling.temperature, 0.5f) << spelling;
  }
  ChatSettings settings;
  EXPECT_EQ(change(settings, "--top-k 40"), "top-k = 40");
  EXPECT_EQ(change(settings, "top_p 0.9"), "top-p = 0.9");
  EXPECT_EQ(change(settings, "min_p=0"), "min-p = 0");
  EXPECT_EQ(change(settings, "repeat-penalty 1.1"), "repeat-penalty = 1.1");
  EXPECT_EQ(change(settings, "repetition_penalty 1.2"), "repeat-penalty = 1.2");
  EXPECT_EQ(change(settings, "presence-penalty -1"), "presence-penalty = -1");
  EXPECT_EQ(change(settings, "frequency-penalty 0.5"), "frequency-penalty = 0.5");
  EXPECT_EQ(change(settings, "-n 20"), "tokens = 20");
  EXPECT_EQ(change(settings, "tokens 30"), "tokens = 30");
  EXPECT_EQ(change(settings, "seed 18446744073709551615"), "seed = 18446744073709551615");
  EXPECT_EQ(settings.sampling.top_k, 40u);
  EXPECT_EQ(settings.sampling.presence_penalty, -1.0f);
  EXPECT_EQ(settings.max_tokens, 30u);
}

TEST(ChatSettings, ThatMakeNoSenseChangeNothing) {
  ChatSettings settings;
  change(settings, "temp 0.5");
  for (const char* wrong : {"temp -1",
                            "temp warm",
                            "temp 0.5x",
                            "temp nan",
                            "temp inf",
                            "temp",
                            "temp=",
                            "top-k -1",
                            "top-k 1.5",
                            "top-k 99999999999",
                            "top-p 2",
                            "min-p -0.1",
                            "repeat-penalty 0",
                            "seed -1",
                            "tokens 1e3",
                            "warmth 1",
                            "",
                            "=",
                            "--",
                            "-- 3",
                            "= 3"})
    EXPECT_THAT(change(settings, wrong), HasSubstr("error: ")) << wrong;
  EXPECT_EQ(settings.sampling.temperature, 0.5f);
  EXPECT_FALSE(settings.sampling.top_k || settings.sampling.top_p || settings.sampling.min_p);
  EXPECT_EQ(change(settings, "warmth 1"),
            "error: There is no setting 'warmth'. Type /set to list them.");
  EXPECT_EQ(change(settings, "temp warm"), "error: 'warm' is not a valid value for temp.");
  EXPECT_EQ(change(settings, "temp"), "error: /set temp needs a value, for example /set temp 0.7.");
  EXPECT_EQ(change(settings, "top-p 2"), "error: top_p must be from 0 to 1, not 2.");
}

TEST(ChatSettings, AreListedAsRequestsHaveThem) {
  ChatSettings settings;
  change(settings, "top-k 40");
  const auto lines = list_settings(settings, kHearthSampling);
  EXPECT_THAT(lines, Contains("temp = 0.7")) << "the default";
  EXPECT_THAT(lines, Contains("min-p = 0.05")) << "the default";
  EXPECT_THAT(lines, Contains("top-k = 40")) << "the user's";
  EXPECT_THAT(lines, Contains("tokens = 0"));
  // Another model's defaults do not replace what the user gave.
  const auto others = list_settings(settings, {.temperature = 0.6f, .top_k = 20});
  EXPECT_THAT(others, Contains("temp = 0.6"));
  EXPECT_THAT(others, Contains("top-k = 40"));
}

TEST(SamplingChoices, ReplaceDefaultsOneByOne) {
  const SamplingOptions defaults{.temperature = 0.6f,
                                 .top_k = 20,
                                 .top_p = 0.95f,
                                 .min_p = 0.01f,
                                 .repetition_penalty = 1.05f};
  const SamplingOptions none = SamplingChoices{}.over(defaults);
  EXPECT_EQ(none.temperature, 0.6f);
  EXPECT_EQ(none.top_k, 20u);
  EXPECT_EQ(none.top_p, 0.95f);
  EXPECT_EQ(none.min_p, 0.01f);
  EXPECT_EQ(none.repetition_penalty, 1.05f);
  // Zero is a choice like any other.
  const SamplingOptions some =
      SamplingChoices{.temperature = 0.0f, .top_k = 0, .frequency_penalty = 0.5f, .seed = 7}.over(
          defaults);
  EXPECT_EQ(some.temperature, 0.0f);
  EXPECT_EQ(some.top_k, 0u);
  EXPECT_EQ(some.top_p, 0.95f);
  EXPECT_EQ(some.frequency_penalty, 0.5f);
  EXPECT_EQ(some.seed, 7u);
}

}  // namespace
}  // namespace hearth
