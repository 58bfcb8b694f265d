// hearth load as a user starts it, against a scripted server.
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/hearth_program.h"
#include "tests/tools/load/load_peer.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLoadTrace = "synthetic:n=6,prompt=4..20,gen=3";

bool built_without_curl() {
  return hearth({"load", "http://127.0.0.1:1"}).err.find("without libcurl") != std::string::npos;
}

LoadPeerOptions three_tokens() {
  return {.answer = [](const auto&, const auto& wire, size_t) { stream_answer(wire, 3, 3); }};
}

class LoadCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static const bool skip = built_without_curl();
    if (skip) GTEST_SKIP() << "this build has no libcurl";
  }
};

TEST_F(LoadCommandTest, PrintsATableForEachNumberOfClients) {
  LoadPeer peer(three_tokens());
  const std::string plot =
      ::testing::TempDir() + "/load_command_test." + std::to_string(getpid()) + ".svg";
  const Finished result = hearth({"load", peer->url(), kLoadTrace, "--clients", "1,3", "--plot", plot});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("/v1/completions: stub, prompts as token ids\n"));
  EXPECT_THAT(result.out, HasSubstr("1 client   3 clients\n"));
  EXPECT_THAT(result.out, HasSubstr("throughput, tokens/s"));
  EXPECT_THAT(result.out, HasSubstr("worst gap of a stream, p99, ms"));
  EXPECT_THAT(result.out, HasSubstr("goodput (TTFT 1 s, TBT 0.1 s), requests/s"));
  std::ifstream file(plot);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(file), {}), HasSubstr("3 clients"));
  std::remove(plot.c_str());
}

TEST_F(LoadCommandTest, JsonIsOneObject) {
  LoadPeer peer(three_tokens());
  const nlohmann::json json = hearth_json(
      {"load", peer->url() + "/v1", kLoadTrace, "--rate", "200", "--requests", "--endpoint", "chat"});
  EXPECT_EQ(json["prompt_as"], "text");
  ASSERT_EQ(json["runs"].size(), 1u);
  const nlohmann::json& run = json["runs"][0];
  EXPECT_EQ(run["rate"], 200);
  EXPECT_EQ(run["completed"], 6);
  EXPECT_EQ(run["generated_tokens"], 18);
  EXPECT_EQ(run["tokens_from"], "usage");
  EXPECT_EQ(run["request_times"].size(), 6u);
  EXPECT_GT(run["throughput_tokens_per_s"].get<double>(), 0);
}

TEST_F(LoadCommandTest, TheKeyComesFromTheEnvironment) {
  LoadPeer peer(three_tokens());
  const Finished result = hearth({"load", peer->url(), kLoadTrace}, {"HEARTH_API_KEY=sesame"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const auto& asked : peer->asked())
    EXPECT_THAT(asked.head, HasSubstr("Authorization: Bearer sesame\r\n"));
}

TEST_F(LoadCommandTest, OneLineSaysThatTheServerIsNotThere) {
  const Finished result = hearth({"load", "http://127.0.0.1:1", kLoadTrace});
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result.err);
  EXPECT_THAT(result.err, HasSubstr("http://127.0.0.1:1: Connection refused"));
  EXPECT_EQ(result.out, "");
}

TEST_F(LoadCommandTest, AnswersNoneOfWhichComesAreAFailure) {
  LoadPeer peer({.answer = [](const auto&, const auto& wire, size_t number) {
    if (number == 0) return stream_answer(wire, 3, 3);  // the probe
    wire.reply(500, R"({"error":{"message":"out of order"}})");
  }});
  const Finished result = hearth({"load", peer->url(), kLoadTrace, "--clients", "2"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no request was answered (HTTP status 500)"));
  EXPECT_THAT(result.out, HasSubstr("6 requests: HTTP status 500: out of order\n"));
}

// Scripts look at the exit code.
TEST_F(LoadCommandTest, ARequestThatFailedIsAFailureButOneThatWasTurnedAwayIsNot) {
  for (const int status : {500, 429}) {
    LoadPeer peer({.answer = [=](const auto&, const auto& wire, size_t number) {
      if (number != 3) return stream_answer(wire, 3, 3);
      wire.reply(status, R"({"error":{"message":"no"}})");
    }});
    const Finished result =
        hearth({"load", peer->url(), kLoadTrace, "--clients", "1", "--retries", "0"});
    EXPECT_EQ(result.exit_code, status == 500 ? 1 : 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("requests completed"));
    if (status == 500) {
      EXPECT_THAT(result.err, HasSubstr("1 of 6 requests failed (HTTP status 500)"));
    }
  }
}

TEST_F(LoadCommandTest, CtrlCEndsWithTheTableSoFar) {
  // The probe and two answers are short; the next one makes the user impatient.
  LoadPeer peer({.answer = [&](const auto&, const auto& wire, size_t number) {
    stream_answer(wire, number < 3 ? 3 : 100'000, 3, 0.002);
  }});
  const std::string file =
      ::testing::TempDir() + "/load_command_test." + std::to_string(getpid()) + ".pid";
  std::thread user([&] {
    for (int i = 0; i < 6000 && peer.completions() < 4; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    pid_t program = 0;
    std::ifstream(file) >> program;
    if (program > 0) kill(program, SIGINT);
  });
  const Finished result =
      run_program({"/bin/sh", "-c", "echo $$ > \"$0\"; exec \"$@\"", file, HEARTH_LAUNCHER,
                   HEARTH_BINARY, "load", peer->url(), kLoadTrace, "--clients", "1"});
  user.join();
  std::remove(file.c_str());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("interrupted; these are the numbers so far\n"));
  EXPECT_THAT(result.out, HasSubstr("requests not finished"));
}

TEST_F(LoadCommandTest, WrongOptionsAreUsageErrors) {
  const std::vector<std::vector<std::string>> wrong = {
      {"load"},
      {"load", "ftp box"},
      {"load", "box", "synthetic:x"},
      {"load", "box", kLoadTrace, "--clients", "2", "--rate", "3"},
      {"load", "box", kLoadTrace, "--rate", "0"},
      {"load", "box", kLoadTrace, "--clients", "0"},
      {"load", "box", kLoadTrace, "--endpoint", "chat", "--prompt-as", "ids"},
      {"load", "box", kLoadTrace, "--plot", "a.png"}};
  for (const std::vector<std::string>& arguments : wrong) {
    const Finished result = hearth(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
  }
}

}  // namespace
}  // namespace hearth::testing
