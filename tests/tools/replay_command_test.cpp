// hearth replay as a user starts it: on the smallest model, and simulated.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/process.h"
#include "tests/support/xml.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kReplayModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

Finished replay(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   {HEARTH_LAUNCHER, HEARTH_BINARY, "replay", "-m", kReplayModel});
  return run_program(arguments);
}

TEST(ReplayCommand, JsonAddsUpAndTheTraceFileIsValid) {
  // The tests of two vector widths may run at the same time.
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
    // Every policy gets the same trace.
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

TEST(ReplayCommand, TheReportNamesThePolicyAndCutRequests) {
  const Finished result = replay({"synthetic:n=2,prompt=4,gen=5000", "--ctx", "64", "--max-seqs",
                                  "2", "--phases", "separate", "--kv-allocation", "reserve"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 of them cut to 64 tokens"));
  EXPECT_THAT(result.out, HasSubstr("continuous phases=separate kv-allocation=reserve"));
  EXPECT_THAT(result.out, HasSubstr("throughput"));
  EXPECT_THAT(result.out, HasSubstr("Not measured: "));
  EXPECT_THAT(result.out, HasSubstr("s to warm up ("));
}

// Without a model and without a Vulkan driver.
Finished simulate(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {HEARTH_BINARY, "replay", "--simulate"});
  return run_program(arguments, {"VK_DRIVER_FILES=/nonexistent", "VK_ICD_FILENAMES=/nonexistent"});
}

TEST(ReplayCommand, SimulatesTheSameNumbersEveryTimeWithoutADevice) {
  const std::string path =
      ::testing::TempDir() + "/replay_simulated." + std::to_string(getpid()) + ".json";
  const std::vector<std::string> arguments = {
      "synthetic:rate=inf,n=64,prompt=16..120,gen=8..96,seed=1",
      "--compare",
      "static,iteration,packed,continuous",
      "--slo",
      "ttft=0.5,tbt=0.05",
      "--max-chunk",
      "64",
      "--requests",
      "--json",
      "--trace",
      path};
  std::string first, first_trace;
  for (int i = 0; i < 2; ++i) {
    const Finished result = simulate(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    std::ifstream file(path);
    const std::string trace{std::istreambuf_iterator<char>(file), {}};
    if (i == 0) {
      first = result.out;
      first_trace = trace;
    }
    EXPECT_EQ(result.out, first);
    EXPECT_EQ(trace, first_trace);
  }
  const auto json = nlohmann::json::parse(first, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << first;
  EXPECT_EQ(json["simulated"], true);
  EXPECT_THAT(json["device"].get<std::string>(), HasSubstr("modelled"));
  EXPECT_EQ(json["slo"]["tbt"], 0.05);
  ASSERT_EQ(json["policies"].size(), 4u);
  const auto throughput = [&](size_t i) {
    return json["policies"][i]["throughput_tokens_per_s"].get<double>();
  };
  EXPECT_LT(throughput(0), throughput(3)) << "static batching, continuous batching";
  EXPECT_FALSE(nlohmann::json::parse(first_trace, nullptr, false).is_discarded());
}

TEST(ReplayCommand, ASimulationSaysThatItIsOne) {
  const Finished result = simulate({"synthetic:n=4,prompt=4,gen=4", "--policy", "packed"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Simulation: modelled 1.2 B model on modelled 8 GB card"));
  EXPECT_THAT(result.out, HasSubstr("packed"));
}

// When blocks run short, --preemption and --swap decide what happens, and --preemption wins. The
// token budget is what --max-step-tokens says.
TEST(ReplayCommand, SwapsIfAskedTo) {
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
    EXPECT_EQ(policy["swapped_out_bytes"].get<uint64_t>() > 0, swaps) << policy;
    EXPECT_EQ(policy["swapped_in_bytes"], policy["swapped_out_bytes"]);
    EXPECT_EQ(policy["swap_bytes_per_s"].is_number(), swaps) << policy;
    EXPECT_EQ(json["max_step_tokens"], 3);
  }
}

TEST(ReplayCommand, ComparesPoliciesWithSwitchesOfTheirOwn) {
  const std::vector<std::string> arguments = {
      "synthetic:n=16,prompt=60,gen=60",
      "--kv-blocks",
      "24",
      "--compare",
      "continuous,continuous+kv=reserve,continuous+preemption=swap+order=fcfs,static",
      "--order",
      "shortest-prompt",
      "--price",
      "2.5/h"};
  const Finished table = simulate(arguments);
  ASSERT_EQ(table.exit_code, 0) << table.err;
  for (const char* text :
       {"continuous+preemption=swap+order=fcfs  ", "continuous order=shortest-prompt",
        "continuous+kv=reserve order=shortest-prompt", "static order=shortest-prompt",
        "GPU busy, % of the time", "cost per million generated tokens", "swapped out, MB",
        "swap rate, GB/s", "end to end, p99, ms"})
    EXPECT_THAT(table.out, HasSubstr(text));

  std::vector<std::string> with_json = arguments;
  with_json.push_back("--json");
  const auto json = nlohmann::json::parse(simulate(with_json).out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["price_per_hour"], 2.5);
  const auto& policies = json["policies"];
  ASSERT_EQ(policies.size(), 4u);
  EXPECT_THAT(policies[1]["switches"].get<std::string>(), HasSubstr("kv=reserve"));
  EXPECT_THAT(policies[1]["switches"].get<std::string>(), HasSubstr("order=shortest-prompt"));
  EXPECT_THAT(policies[2]["switches"].get<std::string>(), HasSubstr("order=fcfs"));
  EXPECT_GT(policies[0]["preemptions_recompute"].get<int>(), 0);
  EXPECT_EQ(policies[1]["preemptions"], 0);
  EXPECT_GT(policies[2]["preemptions_swap"].get<int>(), 0);
  EXPECT_GT(policies[2]["swap_bytes_per_s"].get<double>(), 1e9);
  EXPECT_TRUE(policies[0]["swap_bytes_per_s"].is_null());
  for (const auto& policy : policies) {
    EXPECT_GT(policy["busy_share"].get<double>(), 0.9);
    EXPECT_LE(policy["busy_share"].get<double>(), 1 + 1e-9);
    EXPECT_NEAR(policy["cost_per_million_tokens"].get<double>(),
                2.5 / 3600 / policy["throughput_tokens_per_s"].get<double>() * 1e6, 1e-9);
  }
}

TEST(ReplayCommand, SweepsALimitAndDrawsTheCurve) {
  const std::string path =
      ::testing::TempDir() + "/replay_sweep." + std::to_string(getpid()) + ".svg";
  const std::vector<std::string> arguments = {"synthetic:rate=10,n=40,prompt=64,gen=32",
                                              "--sweep",
                                              "max-seqs=1..16",
                                              "--policy",
                                              "continuous+prefix-cache=off",
                                              "--slo",
                                              "ttft=1,tbt=0.1",
                                              "--plot",
                                              path};
  const Finished table = simulate(arguments);
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("At most 1, 2, 4, 8 or 16 sequences and 256 tokens per step"));
  EXPECT_THAT(table.out, HasSubstr("continuous+prefix-cache=off; times in ms\n"));
  EXPECT_THAT(table.out, HasSubstr("Best: max-seqs="));

  std::ifstream file(path);
  const std::string svg{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(XmlReader(svg).read()) << svg;
  EXPECT_THAT(svg, HasSubstr("continuous+prefix-cache=off for each max-seqs"));
  EXPECT_THAT(svg, HasSubstr("synthetic:rate=10,n=40,prompt=64,gen=32"));

  std::vector<std::string> with_json = arguments;
  with_json.push_back("--json");
  const auto json = nlohmann::json::parse(simulate(with_json).out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  const auto& sweep = json["sweep"];
  EXPECT_EQ(sweep["parameter"], "max-seqs");
  ASSERT_EQ(sweep["points"].size(), 5u);
  double best = 0;
  for (const auto& point : sweep["points"]) {
    EXPECT_EQ(point["policy"], "continuous+prefix-cache=off");
    if (point["meets_slo"]) best = std::max(best, point["throughput_tokens_per_s"].get<double>());
  }
  EXPECT_GT(best, 0);
  for (const auto& point : sweep["points"]) {
    if (point["value"] != sweep["best"]) continue;
    EXPECT_EQ(point["throughput_tokens_per_s"], best);
  }
  std::remove(path.c_str());
}

TEST(ReplayCommand, SaysIfNoPointOfASweepMeetsTheGoal) {
  const std::vector<std::string> arguments = {"synthetic:n=8,prompt=64,gen=8", "--sweep",
                                              "max-step-tokens=16,64", "--slo", "ttft=0.000001"};
  EXPECT_THAT(simulate(arguments).out, HasSubstr("No point has p99 of TTFT within 1e-06 s"));
  std::vector<std::string> with_json = arguments;
  with_json.push_back("--json");
  const auto json = nlohmann::json::parse(simulate(with_json).out, nullptr, false);
  EXPECT_TRUE(json["sweep"]["best"].is_null()) << json;
  EXPECT_EQ(json["sweep"]["parameter"], "max-step-tokens");
}

TEST(ReplayCommand, SweepsOnADevice) {
  const Finished result = replay({"synthetic:n=6,prompt=8,gen=8", "--sweep", "max-seqs=1,4",
                                  "--slo", "ttft=100,tbt=100", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << result.out;
  const auto& points = json["sweep"]["points"];
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0]["steps"].get<int>(), 6 * 8) << "one sequence at a time";
  EXPECT_LT(points[1]["steps"].get<int>(), 6 * 8);
  EXPECT_FALSE(json["sweep"]["best"].is_null());
}

TEST(ReplayCommand, DrawsAComparison) {
  const std::string path =
      ::testing::TempDir() + "/replay_compare." + std::to_string(getpid()) + ".svg";
  const Finished result =
      simulate({"synthetic:n=16", "--compare", "static,continuous+kv=reserve", "--plot", path});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::ifstream file(path);
  const std::string svg{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(XmlReader(svg).read()) << svg;
  EXPECT_THAT(svg, HasSubstr(">continuous+kv=reserve<"));
  std::remove(path.c_str());
}

TEST(ReplayCommand, APlotThatCannotBeWrittenFailsBeforeMeasuring) {
  const Finished result = simulate({"synthetic:n=4", "--plot", "/no/such/folder/a.svg"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot write /no/such/folder/a.svg"));
  EXPECT_EQ(result.out, "");
}

TEST(ReplayCommand, MistakesInPoliciesAndSweepsAreExplained) {
  for (const auto& [arguments, reason] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--compare", "static,contineous"}, "did you mean continuous?"},
           {{"--policy", "contineous"}, "did you mean continuous?"},
           {{"--compare", "continuous+magic=1"}, "prefix-cache"},
           {{"--compare", "continuous+preemption=magic"}, "recompute, swap"},
           {{"--compare", "continuous+swap"}, "preemption=swap"},
           {{"--max-chunk", "few"}, "few"},
           {{"--sweep", "max-seq=1,2"}, "max-seqs"},
           {{"--sweep", "max-seqs=0"}, "from 1 to 4096"},
           {{"--sweep", "max-seqs=1,2", "--max-seqs", "4"}, "cannot be combined"},
           {{"--sweep", "max-seqs=1,2", "--compare", "static"}, "cannot be combined"},
           {{"--price", "free"}, "such as 2.5/h"},
           {{"--plot", "a.png"}, ".svg"}}) {
    std::vector<std::string> all = {"synthetic:n=1"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Finished result = simulate(all);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(reason));
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
        {"synthetic:n=1", "--simulate"},  // and a model
        {"synthetic:n=1", "--kv-allocation", "magic"}}) {
    const Finished result = replay(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_TRUE(result.out.empty());
  }
}

TEST(ReplayCommand, AMissingTraceIsAFailure) {
  const Finished result = replay({"no/such/trace.csv"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no/such/trace.csv"));
}

}  // namespace
}  // namespace hearth::testing
