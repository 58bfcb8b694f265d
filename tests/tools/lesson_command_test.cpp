// hearth lesson as a user starts it: simulated, and on the smallest model.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/hearth_program.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kTinyModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

Finished lesson(std::vector<std::string> arguments, const std::string& input = {}) {
  arguments.insert(arguments.begin(), {HEARTH_LAUNCHER, HEARTH_BINARY, "lesson"});
  return run_program(arguments, {}, input);
}

TEST(LessonCommand, ListsAtLeastFifteen) {
  const Finished result = lesson({"--list"});
  EXPECT_EQ(lesson({}).out, result.out);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GE(std::count(result.out.begin(), result.out.end(), '\n'), 15);
  EXPECT_THAT(result.out, HasSubstr("\n 2  prefill-decode"));
}

TEST(LessonCommand, ExplainsAsksRunsAndCompares) {
  const Finished result = lesson({"why-batch", "--simulate", "--answer", "a"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, StartsWith("Why batch?\n"));
  EXPECT_THAT(result.out, HasSubstr("c) nearly eight times as many (4 to 9 times)"));
  EXPECT_THAT(result.out, HasSubstr("You predicted a, hardly more (below"));
  EXPECT_THAT(result.out, HasSubstr("Try next"));
  EXPECT_THAT(result.out, HasSubstr("hearth lesson prefill-decode"));
  for (size_t begin = 0; begin < result.out.size();) {
    const size_t end = result.out.find('\n', begin);
    const std::string line = result.out.substr(begin, end - begin);
    if (line.find("hearth replay") == std::string::npos) {
      EXPECT_LE(line.size(), 100u) << line;
    }
    begin = end + 1;
  }
}

TEST(LessonCommand, TakesThePredictionFromAPipe) {
  EXPECT_THAT(lesson({"why-batch", "--simulate"}, "c\n").out,
              HasSubstr("Your prediction was right."));
  EXPECT_THAT(lesson({"why-batch", "--simulate"}, "D\n").out, HasSubstr("You predicted d,"));
  // Nothing to read, or nothing that is a choice: the lesson continues.
  for (const char* input : {"", "\n", "x\n"}) {
    const Finished result = lesson({"why-batch", "--simulate"}, input);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("Measured: "));
    EXPECT_THAT(result.out, Not(HasSubstr("predict")));
  }
}

TEST(LessonCommand, JsonHasTheMeasuredAnswer) {
  const auto json = hearth_json({"lesson", "continuous", "--simulate", "--answer", "b"});
  EXPECT_EQ(json["lesson"], "continuous");
  EXPECT_EQ(json["simulated"], true);
  ASSERT_EQ(json["runs"].size(), 3u);
  const double ratio =
      json["runs"][2]["throughput"].get<double>() / json["runs"][0]["throughput"].get<double>();
  EXPECT_DOUBLE_EQ(json["measured"].get<double>(), ratio);
  EXPECT_EQ(json["answer"], ratio < 1.2 ? "a" : ratio < 2 ? "b" : "c");
  EXPECT_EQ(json["right"], json["answer"] == "b");
}

TEST(LessonCommand, OneLineForEveryMistake) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"nothing"},
                                                    {"--json"},
                                                    {"--simulate"},
                                                    {"paging", "--answer", "z"},
                                                    {"paging", "--answer", "yes"},
                                                    {"paging", "--list"},
                                                    {"/no/such/lesson.txt"},
                                                    {"paging", "--simulate", "-m", kTinyModel}}) {
    const Finished result = lesson(arguments);
    EXPECT_NE(result.exit_code, 0);
    expect_one_line(result.err);
    EXPECT_EQ(result.out, "");
  }
  EXPECT_THAT(lesson({"paging", "--answer", "z"}).err, HasSubstr("the choices are a, b or c"));
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("hearth_bad_" + std::to_string(getpid()) + ".txt");
  std::ofstream(path) << "title: x\nchoice b: below 1: y\n";
  const Finished result = lesson({path.string()});
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result.err);
  EXPECT_THAT(result.err, HasSubstr(path.string() + ", line 2: the next choice is a"));
  std::filesystem::remove(path);
}

// Beams, sampling, texts, converted weights and perplexity need a real model.
TEST(LessonCommand, RunsOnARealDevice) {
  const auto decoding = hearth_json({"lesson", "decoding", "-m", kTinyModel});
  EXPECT_EQ(decoding["simulated"], false);
  ASSERT_EQ(decoding["runs"].size(), 3u);
  for (const auto& run : decoding["runs"]) {
    EXPECT_EQ(run["tokens"], 40);
    EXPECT_FALSE(run["text"].get<std::string>().empty());
    EXPECT_LT(run["logprob"].get<double>(), 0);
  }
  EXPECT_GE(decoding["runs"][2]["logprob"].get<double>(),
            decoding["runs"][0]["logprob"].get<double>() - 1e-3);
}

TEST(LessonCommand, ConvertsWeightsAndScoresAText) {
  const auto json = hearth_json({"lesson", "quantization", "-m", kTinyModel});
  ASSERT_EQ(json["runs"].size(), 4u);
  const auto &f16 = json["runs"][0], &q4 = json["runs"][1];
  EXPECT_GT(f16["weight_mb"].get<double>(), 2 * q4["weight_mb"].get<double>());
  EXPECT_GT(f16["perplexity"].get<double>(), 1);
  EXPECT_NE(f16["perplexity"], q4["perplexity"]);
}

}  // namespace
}  // namespace hearth::testing
