// hearth replay as a user starts it, on the smallest model.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/process.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

Finished replay(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {HEARTH_LAUNCHER, HEARTH_BINARY, "replay", "-m", kModel});
  return run_program(arguments);
}

TEST(ReplayCommand, JsonAddsUpAndTheTraceFileIsRead) {
  // Two widths may run at the same time.
  const std::string path =
      ::testing::TempDir() + "/replay_command_test." + std::to_string(getpid()) + ".json";
  const Finished result =
      replay({"synthetic:n=6,prompt=4..20,gen=2..8,prefix=16", "--max-seqs", "2", "--compare",
              "static,continuous", "--json", "--requests", "--trace", path});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << result.out;
  ASSERT_EQ(json["policies"].size(), 2u);
  uint64_t generated = 0;
  for (const auto& policy : json["policies"]) {
    for (const char* key : {"policy", "throughput_tokens_per_s", "ttft_seconds", "tbt_seconds",
                            "tpot_seconds", "e2e_seconds", "occupancy", "padding_share",
                            "kv_waste_share", "preemptions", "prefix_hit_share", "goodput"})
      EXPECT_TRUE(policy.contains(key)) << key;
    EXPECT_EQ(policy["requests"], 6);
    EXPECT_EQ(policy["failed"], 0);
    uint64_t tokens = 0;
    for (const auto& request : policy["request_times"]) tokens += request["tokens"].get<uint64_t>();
    EXPECT_EQ(policy["generated_tokens"], tokens);
    EXPECT_NEAR(policy["throughput_tokens_per_s"].get<double>(),
                static_cast<double>(tokens) / policy["makespan_seconds"].get<double>(), 1e-6);
    // The same trace for everyone.
    if (generated == 0) generated = tokens;
    EXPECT_EQ(tokens, generated);
  }
  EXPECT_EQ(json["policies"][0]["policy"], "static");
  EXPECT_GT(json["policies"][0]["padding_share"].get<double>(), 0);
  EXPECT_EQ(json["policies"][1]["padding_share"], 0.0);
  EXPECT_EQ(json["policies"][0]["prefix_hit_share"], 0.0);
  EXPECT_GT(json["policies"][1]["prefix_hit_share"].get<double>(), 0);

  std::ifstream file(path);
  const auto trace = nlohmann::json::parse(file, nullptr, false);
  ASSERT_FALSE(trace.is_discarded());
  uint64_t steps = 0, sampled = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["ts"].get<double>(), 0);
    if (event["name"] == "step")
      ++steps;
    else
      sampled += event["args"]["samples"].get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(steps, json["policies"][0]["steps"].get<uint64_t>() +
                       json["policies"][1]["steps"].get<uint64_t>());
  EXPECT_EQ(sampled, 2 * generated);
}

TEST(ReplayCommand, TheTableNamesThePolicyAndWhatWasCut) {
  const Finished result = replay({"synthetic:n=2,prompt=4,gen=5000", "--ctx", "64", "--max-seqs",
                                  "2", "--phases", "separate", "--kv-allocation", "reserve"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 cut to 64 tokens"));
  EXPECT_THAT(result.out, HasSubstr("continuous phases=separate kv-allocation=reserve"));
  EXPECT_THAT(result.out, HasSubstr("throughput"));
}

// Blocks run short: what --preemption and --swap say is what happens then, and the former has the
// last word. A step is as short as it is asked to be.
TEST(ReplayCommand, SwapsWhereItIsAskedTo) {
  struct Case {
    std::vector<std::string> arguments;
    bool swaps;
  };
  for (const auto& [arguments, swaps] :
       {Case{{}, false}, Case{{"--preemption", "swap"}, true}, Case{{"--swap", "4MB"}, true},
        Case{{"--swap", "4MB", "--preemption", "recompute"}, false}}) {
    std::vector<std::string> all = {"synthetic:n=4,prompt=20,gen=40",
                                    "--ideal",
                                    "--max-seqs",
                                    "4",
                                    "--max-step-tokens",
                                    "3",
                                    "--kv-blocks",
                                    "8",
                                    "--json"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Finished result = replay(all);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto json = nlohmann::json::parse(result.out, nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << result.out;
    const auto& policy = json["policies"][0];
    EXPECT_EQ(policy["preemptions_swap"].get<int>() > 0, swaps) << policy;
    EXPECT_EQ(policy["preemptions_recompute"].get<int>() > 0, !swaps) << policy;
    EXPECT_EQ(json["max_step_tokens"], 3);
  }
}

TEST(ReplayCommand, WrongArgumentsAreUsageErrors) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{},
        {"synthetic:n=0"},
        {"synthetic:n=1", "--policy", "magic"},
        {"synthetic:n=1", "--compare", "static,magic"},
        {"synthetic:n=1", "--slo", "ttft"},
        {"synthetic:n=1", "--max-chunk", "few"},
        {"synthetic:n=1", "--speed", "0"},
        {"synthetic:n=1", "--kv-allocation", "magic"}}) {
    const Finished result = replay(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_TRUE(result.out.empty());
  }
}

TEST(ReplayCommand, ATraceThatIsNotThereIsAFailure) {
  const Finished result = replay({"no/such/trace.csv"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no/such/trace.csv"));
}

}  // namespace
}  // namespace hearth::testing
