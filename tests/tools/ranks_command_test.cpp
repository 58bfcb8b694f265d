// hearth on several ranks as a user starts it: in one process, and under mpirun, where those tests
// are skipped if there is none. All ranks share one device.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/hearth_program.h"
#include "tests/support/serving.h"

namespace hearth::testing {
namespace {

using RankReport = nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;

const std::vector<std::string> kRankPrompt = {
    "run", "-m", Serving::kSmallestModel, "-p", "Once", "-n", "12", "--temp", "0", "--json"};
const std::vector<std::string> kMpiEnvironment = {"OMPI_ALLOW_RUN_AS_ROOT=1",
                                                  "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};

std::vector<std::string> mpirun(int ranks) {
  return {"/usr/bin/env", "mpirun", "--oversubscribe",    "--bind-to",
          "none",         "-n",     std::to_string(ranks)};
}

// Empty, or why tests under mpirun are skipped.
std::string no_mpi() {
  if (run_program({"/bin/sh", "-c", "command -v mpirun"}).exit_code != 0)
    return "mpirun is not installed (package openmpi-bin)";
  std::vector<std::string> arguments = mpirun(2);
  arguments.insert(arguments.end(), {HEARTH_LAUNCHER, HEARTH_BINARY, "bench", "--link", "--json"});
  const Finished probe = run_program(arguments, kMpiEnvironment);
  return probe.err.find("has no MPI") == std::string::npos
             ? ""
             : "this build has no MPI (package libopenmpi-dev)";
}

RankReport run_on(std::vector<std::string> starter, std::vector<std::string> more) {
  starter.insert(starter.end(), {HEARTH_LAUNCHER, HEARTH_BINARY});
  starter.insert(starter.end(), kRankPrompt.begin(), kRankPrompt.end());
  // Divided rows change the last bit of results with the size of a step, so they exclude it.
  if (std::ranges::find(more, "--divide-rows") == more.end()) starter.push_back("--deterministic");
  starter.insert(starter.end(), more.begin(), more.end());
  const Finished result = run_program(starter, kMpiEnvironment);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  RankReport parsed = RankReport::parse(result.out, nullptr, false);
  return parsed.is_object() ? parsed : RankReport::object();
}

TEST(RanksCommand, TheSameTokensOnTwoRanksOfOneProcess) {
  const RankReport alone = run_on({}, {});
  ASSERT_EQ(alone["ids"].size(), 12u);
  EXPECT_EQ(run_on({}, {"--devices", "0,0"})["ids"], alone["ids"]);
  EXPECT_EQ(run_on({}, {"--devices", "0,0", "--split", "tensor"})["ids"], alone["ids"]);
  EXPECT_EQ(run_on({}, {"--devices", "0,0,0", "--split", "sequence"})["ids"], alone["ids"]);
}

TEST(RanksCommand, TheSameTokensUnderMpirunByTensor) {
  if (const std::string reason = no_mpi(); !reason.empty()) GTEST_SKIP() << reason;
  const RankReport alone = run_on({}, {});
  EXPECT_EQ(run_on(mpirun(2), {"--split", "tensor"})["ids"], alone["ids"]);
  EXPECT_EQ(run_on(mpirun(2), {"--split", "tensor", "--divide-rows", "1"})["ids"], alone["ids"]);
}

TEST(RanksCommand, TheSameTokensUnderMpirunBySequence) {
  if (const std::string reason = no_mpi(); !reason.empty()) GTEST_SKIP() << reason;
  EXPECT_EQ(run_on(mpirun(2), {"--split", "sequence"})["ids"], run_on({}, {})["ids"]);
}

TEST(RanksCommand, TheSameTokensUnderMpirunWithUnevenLayers) {
  if (const std::string reason = no_mpi(); !reason.empty()) GTEST_SKIP() << reason;
  const RankReport alone = run_on({}, {});
  const uint32_t layers =
      hearth_json({"info", "-m", Serving::kSmallestModel})["layers"].get<uint32_t>();
  ASSERT_GE(layers, 3u);
  EXPECT_EQ(run_on(mpirun(2), {"--layers", std::to_string(layers - 1) + ",1"})["ids"],
            alone["ids"]);
  EXPECT_EQ(run_on(mpirun(3), {"--layers", "1," + std::to_string(layers - 2) + ",1"})["ids"],
            alone["ids"]);
}

TEST(RanksCommand, InfoPredictsTheMemoryOfEachRank) {
  const RankReport info =
      hearth_json({"info", "-m", Serving::kSmallestModel, "--devices", "0,0", "--ctx", "256"});
  ASSERT_EQ(info["ranks"].size(), 2u);
  uint64_t layers = 0, kv = 0;
  for (const RankReport& rank : info["ranks"]) {
    layers += rank["layers"].get<uint64_t>();
    kv += rank["kv_bytes_per_token"].get<uint64_t>();
    EXPECT_TRUE(rank["fits"].get<bool>());
    EXPECT_LT(rank["weight_bytes"].get<uint64_t>(), info["weight_bytes"].get<uint64_t>());
  }
  // More sequences take longer, and a step takes as long as its ranks and the way between them.
  ASSERT_EQ(info["decode_steps"].size(), 3u);
  double last = 0;
  for (const RankReport& step : info["decode_steps"]) {
    const double seconds = step["seconds"].get<double>();
    EXPECT_GT(seconds, last);
    last = seconds;
    EXPECT_NEAR(step["rank_seconds"][0].get<double>() + step["rank_seconds"][1].get<double>() +
                    step["hand_over_seconds"].get<double>(),
                seconds, 1e-9);
  }
  EXPECT_EQ(layers, info["layers"].get<uint64_t>());
  EXPECT_EQ(kv, info["kv_bytes_per_token"].get<uint64_t>());
  EXPECT_THAT(hearth({"info", "-m", Serving::kSmallestModel, "--devices", "0,0"}).out,
              HasSubstr("on 2 ranks"));
}

TEST(RanksCommand, InfoPredictsTheMemoryOfEachShare) {
  // The smallest model has only one KV head, which both ranks would keep.
  const std::string model = HEARTH_SOURCE_DIR "/models/default/hearth-storyteller-Q8_0.gguf";
  const RankReport info =
      hearth_json({"info", "-m", model, "--devices", "0,0", "--split", "tensor", "--ctx", "256"});
  ASSERT_EQ(info["ranks"].size(), 2u);
  uint64_t kv = 0;
  for (const RankReport& rank : info["ranks"]) {
    kv += rank["kv_bytes_per_token"].get<uint64_t>();
    EXPECT_TRUE(rank["fits"].get<bool>());
    EXPECT_EQ(rank["layers"], info["layers"]);
    EXPECT_EQ(rank["shares_of_layers"].get<uint32_t>(), 2u);
    EXPECT_NEAR(rank["weight_bytes"].get<double>() * 2 / info["weight_bytes"].get<double>(), 1,
                0.03);
  }
  EXPECT_EQ(kv, info["kv_bytes_per_token"].get<uint64_t>());
  EXPECT_THAT(hearth({"info", "-m", model, "--devices", "0,0", "--split", "tensor"}).out,
              HasSubstr("share 2 of 2 of every layer"));
}

// Every rank has all layers, and half of the blocks; only the last one needs the output matrix.
TEST(RanksCommand, InfoPredictsHowMuchOfTheKvCacheARankHas) {
  const std::vector<std::string> base{"info", "-m", Serving::kSmallestModel};
  std::vector<std::string> divided = base;
  divided.insert(divided.end(), {"--devices", "0,0", "--split", "sequence"});
  const RankReport alone = hearth_json(base), info = hearth_json(divided);
  ASSERT_EQ(info["ranks"].size(), 2u);
  for (const RankReport& rank : info["ranks"]) {
    EXPECT_TRUE(rank["fits"].get<bool>());
    EXPECT_EQ(rank["shares_of_kv_cache"].get<uint32_t>(), 2u);
    EXPECT_EQ(rank["kv_bytes_per_token"].get<uint64_t>() * 2,
              alone["kv_bytes_per_token"].get<uint64_t>());
  }
  EXPECT_EQ(info["ranks"][1]["weight_bytes"], alone["weight_bytes"]);
  EXPECT_THAT(hearth(divided).out, HasSubstr("share 2 of 2 of the KV cache"));
}

TEST(RanksCommand, RefusesWhatItCannotDivideByName) {
  const auto error_of = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{"run", "-m", Serving::kSmallestModel, "-p", "Once"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished result = hearth(arguments);
    EXPECT_NE(result.exit_code, 0);
    return result.err;
  };
  EXPECT_THAT(error_of({"--devices", "0,0", "--split", "tensor", "--layers", "2,2"}),
              HasSubstr("--layers and --split tensor cannot be combined"));
  EXPECT_THAT(error_of({"--devices", "0,0", "--split", "sequence", "--layers", "2,2"}),
              HasSubstr("--layers and --split sequence cannot be combined"));
  EXPECT_THAT(error_of({"--devices", "0,0", "--split", "rows"}),
              HasSubstr("use layers, tensor or sequence"));
  EXPECT_THAT(error_of({"--devices", "0,0", "--divide-rows", "64"}),
              HasSubstr("--divide-rows needs --split tensor"));
  EXPECT_THAT(error_of({"--devices", "0,0", "--split", "tensor", "--divide-rows", "many"}),
              HasSubstr("use auto or a number of tokens"));
  EXPECT_THAT(
      error_of({"--devices", "0,0", "--split", "tensor", "--divide-rows", "64", "--deterministic"}),
      HasSubstr("leave it out with --deterministic"));
  EXPECT_THAT(error_of({"--devices", "0,,0"}), HasSubstr("commas between them"));
  EXPECT_THAT(error_of({"--devices", "0,0", "-d", "0"}), HasSubstr("cannot be combined"));
  EXPECT_THAT(error_of({"--layers", "2,2"}), HasSubstr("--layers needs --devices or mpirun"));
  EXPECT_THAT(error_of({"--split", "tensor"}), HasSubstr("need several --devices"));
  EXPECT_THAT(error_of({"--devices", "0", "--parts", "2"}), HasSubstr("need several --devices"));
  EXPECT_THAT(error_of({"--devices", "0,0", "--penalty-alpha", "0.5", "--top-k", "4"}),
              HasSubstr("hearth: contrastive search is not available with several devices"));
  EXPECT_THAT(error_of({"--devices", "0,0", "--split", "sequence", "--penalty-alpha", "0.5",
                        "--top-k", "4"}),
              HasSubstr("hearth: contrastive search is not available with several devices"));
}

TEST(RanksCommand, BenchTimesTheLink) {
  const RankReport timed = hearth_json({"bench", "--link", "-m", Serving::kSmallestModel});
  EXPECT_EQ(timed["link"], "in-process");
  EXPECT_GE(timed["messages"].size(), 3u);
  EXPECT_GT(timed["splits"][0]["tensor_pays_above_seconds"].get<double>(),
            timed["splits"][0]["pipeline_pays_above_seconds"].get<double>());
  EXPECT_GT(timed["splits"][0]["sequence_pays_above_seconds"].get<double>(), 0);
}

// A tensor split says whether norms are divided, and why; which it is depends on the machine's
// link.
TEST(RanksCommand, BenchSaysWhetherNormsAreDivided) {
  const auto line = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{"bench",     "-m",     Serving::kSmallestModel,
                                       "--devices", "0,0",    "--split",
                                       "tensor",    "-p",     "0",
                                       "-n",        "2",      "--batch",
                                       "1",         "--reps", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return hearth_json(arguments)["divided_rows"].get<std::string>();
  };
  EXPECT_THAT(line({}), AllOf(AnyOf(HasSubstr("norms are whole on every rank, because"),
                                    HasSubstr("norms are divided over the ranks in steps of")),
                              HasSubstr("1 MiB takes")));
  EXPECT_THAT(line({"--divide-rows", "64"}), HasSubstr("steps of 64 tokens or more"));
}

TEST(RanksCommand, BenchComparesRanksWithOneDevice) {
  const RankReport timed = hearth_json({"bench", "-m", Serving::kSmallestModel, "--devices", "0,0",
                                        "-p", "0", "-n", "8", "--batch", "2", "--reps", "1"});
  ASSERT_EQ(timed["results"].size(), 1u);
  const RankReport& decode = timed["results"][0];
  EXPECT_GT(decode["ratio"].get<double>(), 0);
  EXPECT_GT(decode["alone_tokens_per_s"].get<double>(), 0);
  ASSERT_EQ(decode["ranks"].size(), 2u);
  // Both ranks computed every step, and no part of a step's time is counted twice.
  EXPECT_EQ(decode["ranks"][0]["steps"], decode["ranks"][1]["steps"]);
  EXPECT_GE(decode["ranks"][0]["steps"].get<uint32_t>(), 8u);
  EXPECT_GT(decode["boundary_seconds"].get<double>(), 0);
  EXPECT_THAT(hearth({"bench", "--devices", "0,0", "--profile"}).err,
              HasSubstr("times only prompts and decoding"));
}

// The process of a rank that this test has started, found by its environment; 0 if there is none.
pid_t process_of_rank(int rank, const std::string& mark) {
  const std::string wanted = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "environ");
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    const std::string environment = '\0' + all;
    if (environment.find('\0' + wanted + '\0') != std::string::npos &&
        environment.find('\0' + mark + '\0') != std::string::npos)
      return static_cast<pid_t>(std::stol(entry.path().filename().string()));
  }
  return 0;
}

TEST(RanksCommand, AKilledRankEndsEveryRequestAndTheJob) {
  if (const std::string reason = no_mpi(); !reason.empty()) GTEST_SKIP() << reason;
  const std::string mark = "HEARTH_TEST_MARK=" + std::to_string(getpid());
  for (const std::string& variable : kMpiEnvironment) putenv(const_cast<char*>(variable.c_str()));
  std::vector<std::string> starter = mpirun(2);
  starter.insert(starter.begin() + 1, mark);
  Serving server({}, Serving::kSmallestModel, starter);
  ASSERT_NE(server.port(), 0) << server.log();
  EXPECT_THAT(server.log(), HasSubstr("rank 1: "));
  EXPECT_EQ(server.get("/health").status, 200);
  const pid_t worker = process_of_rank(1, mark);
  ASSERT_NE(worker, 0);

  std::thread killer([&] {
    server.wait_for("hearth_requests_running", 1);
    kill(worker, SIGKILL);
  });
  const auto begin = std::chrono::steady_clock::now();
  const HttpAnswer answer =
      server.post("/v1/completions", R"({"prompt":"Once","max_tokens":900,"ignore_eos":true})");
  killer.join();
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  EXPECT_NE(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("rank 1 was lost"));
  EXPECT_LT(waited.count(), 20);
  EXPECT_NE(server.wait(), 0);
  EXPECT_EQ(process_of_rank(0, mark), 0);
  EXPECT_EQ(process_of_rank(1, mark), 0);
}

}  // namespace
}  // namespace hearth::testing
