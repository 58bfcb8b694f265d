// hearth bench with a model: its tables, and the JSON that scripts rely on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/hearth_program.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

const std::string kBenchModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

void expect_bench_keys(const nlohmann::json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) EXPECT_TRUE(object.contains(key)) << key;
}

TEST(Bench, TheTableSaysWhatTheShareIsOf) {
  const Finished result =
      hearth({"bench", "-m", kBenchModel, "-p", "16", "-n", "4", "--batch", "1", "--reps", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("of ceiling"));
  EXPECT_THAT(result.out, HasSubstr("ceilings, measured: "));
  EXPECT_THAT(result.out, HasSubstr("ms/token"));
  EXPECT_THAT(result.out, HasSubstr("ms/step"));
}

TEST(Bench, TimesPromptAndDecode) {
  const auto json =
      hearth_json({"bench", "-m", kBenchModel, "-p", "64", "-n", "8", "--batch", "1,3", "--reps",
                   "1", "--context", "20", "--max-step-tokens", "40"});
  expect_bench_keys(json, {"device", "model", "results"});
  ASSERT_EQ(json["results"].size(), 3u);
  const char* tests[] = {"prompt", "decode", "decode"};
  const int batches[] = {1, 1, 3}, tokens[] = {64, 8, 24}, steps[] = {2, 8, 8};
  for (size_t i = 0; i < 3; ++i) {
    const auto& result = json["results"][i];
    expect_bench_keys(result, {"stddev", "flops_per_s"});
    EXPECT_EQ(result["test"], tests[i]);
    EXPECT_EQ(result["batch"], batches[i]);
    EXPECT_EQ(result["tokens"], tokens[i]);
    EXPECT_GT(result["tokens_per_s"].get<double>(), 0);
    // There is one repetition, so the mean rate and the mean time are of the same run.
    EXPECT_NEAR(result["ms_per_token"].get<double>() * result["tokens_per_s"].get<double>(), 1000,
                1e-6);
    EXPECT_EQ(result["steps"], steps[i]);
    EXPECT_NEAR(result["ms_per_step"].get<double>() * steps[i],
                result["ms_per_token"].get<double>() * tokens[i], 1e-6);
  }
  // A step of one stream reads every weight once, and little besides.
  const double weights = hearth_json({"info", "-m", kBenchModel})["weight_bytes"].get<double>();
  const auto& decode = json["results"][1];
  const double per_token =
      decode["bytes_per_s"].get<double>() / decode["tokens_per_s"].get<double>();
  EXPECT_GT(per_token, weights);
  EXPECT_LT(per_token, weights * 1.1);
}

// Their prompts take many steps, and decode steps of the first ones come in between.
TEST(Bench, ManySequencesWithAContextDecodeTogether) {
  const auto json = hearth_json({"bench", "-m", kBenchModel, "-p", "0", "-n", "4", "--batch", "32",
                                 "--reps", "1", "--context", "64"});
  ASSERT_EQ(json["results"].size(), 1u);
  EXPECT_EQ(json["results"][0]["tokens"], 32 * 4);
}

// Plans for a device that is not here, without loading weights.
TEST(Bench, ExplainsWhichKernelsAStepRuns) {
  const auto json = hearth_json({"bench", "--explain", "-m", kBenchModel, "--device-profile",
                                 "h200", "-p", "32", "--batch", "1,8"});
  EXPECT_EQ(json["device"], "NVIDIA H200");
  ASSERT_EQ(json["steps"].size(), 3u);  // the prompt and two batches
  const auto& decode = json["steps"][1];
  EXPECT_EQ(decode["rows"], 1);
  // Before the layers, all three of them, and after them.
  ASSERT_EQ(decode["layers"].size(), 3u);
  const auto& layers = decode["layers"][1];
  EXPECT_EQ(layers["first_layer"], 0);
  EXPECT_EQ(layers["last_layer"], 2);
  EXPECT_EQ(layers["ops"][0]["part"], "qkv");
  EXPECT_EQ(layers["ops"][0]["formula"], "qkv = weight * norm(hidden)");
  expect_bench_keys(layers["ops"][0]["kernels"][0], {"kernel", "constants", "subgroup", "groups"});
  // What the step costs at the least: eight times the arithmetic, but the weights once.
  const auto &one = decode["costs"]["qkv"], &eight = json["steps"][2]["costs"]["qkv"];
  EXPECT_GT(one["operations"], 0);
  EXPECT_EQ(eight["operations"], 8 * one["operations"].get<double>());
  EXPECT_EQ(eight["activation_bytes"], 8 * one["activation_bytes"].get<double>());
  EXPECT_EQ(eight["memory_bytes"], one["memory_bytes"]);

  const Finished text = hearth(
      {"bench", "--explain", "-m", kBenchModel, "--device-profile", "rdna2", "--batch", "8"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("on AMD Radeon RX 6800 XT"));
  EXPECT_THAT(text.out, HasSubstr("decode of 8 sequences"));
  EXPECT_THAT(text.out, HasSubstr("at the least"));
  const Finished unknown =
      hearth({"bench", "--explain", "-m", kBenchModel, "--device-profile", "voodoo"});
  EXPECT_EQ(unknown.exit_code, 1);
  expect_one_line(unknown.err);
  EXPECT_THAT(unknown.err, HasSubstr("no device profile 'voodoo'"));
}

TEST(Bench, ProfileTellsWhereTheTimeGoes) {
  const auto json =
      hearth_json({"bench", "--profile", "-m", kBenchModel, "-p", "32", "-n", "8", "--batch", "2"});
  ASSERT_EQ(json["profiles"].size(), 2u);
  for (const auto& profile : json["profiles"]) {
    double bytes = 0;
    for (const auto& part : profile["parts"]) {
      EXPECT_GT(part["seconds"].get<double>(), 0) << part["part"];
      // Every part that is recorded has its costs, and the other way round.
      EXPECT_GT(part["bytes"].get<double>(), 0) << part["part"];
      bytes += part["bytes"].get<double>();
    }
    // Norms and activations may be inside the products beside them.
    EXPECT_GE(profile["parts"].size(), 9u);
    EXPECT_LE(profile["parts"].size(), 11u);
    EXPECT_GT(bytes, 1e6);
  }
}

TEST(Bench, ComparesContrastiveDecodingWithItsModelsAlone) {
  const auto json = hearth_json({"bench", "--amateur", kBenchModel, "-m", kBenchModel, "-n", "12",
                                 "--batch", "1,2", "--reps", "1"});
  ASSERT_EQ(json["results"].size(), 2u);
  for (const auto& result : json["results"]) {
    expect_bench_keys(result, {"batch", "tokens_per_s", "step_ms", "extra"});
    for (const char* step : {"step_ms", "expert_step_ms", "amateur_step_ms"})
      EXPECT_GT(result[step].get<double>(), 0) << step;
  }
}

TEST(Bench, RunsOneOfTheOtherTestsAtATime) {
  EXPECT_THAT(hearth({"bench", "--profile", "--penalty-alpha", "0.6"}).err,
              HasSubstr("--penalty-alpha: cannot be combined with --profile"));
  EXPECT_THAT(hearth({"bench", "--beams", "2", "--speculate", "ngram"}).err,
              HasSubstr("--beams: cannot be combined with --speculate"));
  EXPECT_THAT(hearth({"bench", "--amateur", kBenchModel, "--devices", "0,0"}).err,
              HasSubstr("on several ranks, hearth bench times only prompts and decoding"));
}

}  // namespace
}  // namespace hearth::testing
