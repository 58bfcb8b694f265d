// hearth compress, run --stats and --ban, and chat --when-full, as a user starts them.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include "tests/support/hearth_program.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPromptModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

class PromptCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("prompt_commands_test." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream(file()) << "Once upon a time, there was a little girl named Lily. She loved to "
                             "play outside in the park with her friends. One day, Lily found 17 "
                             "keys under a tree, and she was very happy. She ran home to show "
                             "them to her mom. Her mom smiled and said that it was time for bed."
                             "\n\nHow many keys did Lily find?\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return (folder_ / "text").string(); }

  std::filesystem::path folder_;
};

TEST_F(PromptCommands, CompressKeepsNumbersAndTheQuestion) {
  const auto result = hearth_json(
      {"compress", "-m", kPromptModel, "-f", file(), "--ratio", "0.5", "--answer", " 17"});
  const std::string text = result["text"];
  EXPECT_THAT(text, HasSubstr("17"));
  EXPECT_THAT(text, HasSubstr("How many keys did Lily find?"));
  const double before = result["tokens_before"], after = result["tokens_after"];
  EXPECT_LT(after, 0.75 * before);
  EXPECT_GT(after, 0.3 * before);
  EXPECT_GT(result["ttft_seconds_before"].get<double>(), 0);
  EXPECT_GT(result["ttft_seconds_after"].get<double>(), 0);
  EXPECT_LT(result["answer_logprob_before"].get<double>(), 0);
  EXPECT_LT(result["answer_logprob_after"].get<double>(), 0);
}

TEST_F(PromptCommands, CompressReportsOnStderr) {
  const Finished result = hearth(
      {"compress", "-m", kPromptModel, "-f", file(), "--unit", "sentence", "--ratio", "0.4"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("How many keys"));
  EXPECT_THAT(result.out, Not(HasSubstr("before")));
  for (const char* part : {"tokens: ", "scoring took", "time to first token", "answer of"})
    EXPECT_THAT(result.err, HasSubstr(part));
}

TEST_F(PromptCommands, CompressLeavesShortTextsAlone) {
  const auto result =
      hearth_json({"compress", "-m", kPromptModel, "-f", file(), "--min-tokens", "1000"});
  EXPECT_EQ(result["tokens_before"], result["tokens_after"]);
  EXPECT_EQ(result["scoring_seconds"], 0);
}

TEST_F(PromptCommands, CompressKeepsOnlyWhatASchemaExtracts) {
  const std::string schema = (folder_ / "schema.json").string();
  std::ofstream(schema) << R"({"type":"object","properties":{"keys":{"type":"integer",
      "minimum":0,"maximum":99},"who":{"enum":["Lily","Tom"]}},"required":["keys","who"],
      "additionalProperties":false})";
  const auto result =
      hearth_json({"compress", "-m", kPromptModel, "-f", file(), "--entities", schema});
  const auto& entities = result["entities"];
  EXPECT_EQ(entities.size(), 2u);
  EXPECT_LE(entities["keys"].get<int>(), 99);
  EXPECT_THAT((std::vector<std::string>{"Lily", "Tom"}),
              ::testing::Contains(entities["who"].get<std::string>()));
  // Nothing but the JSON and the question.
  EXPECT_THAT(result["text"].get<std::string>(),
              ::testing::MatchesRegex("\\{\"keys\":[0-9]+,\"who\":\"(Lily|Tom)\"\\}\\s+"
                                      "How many keys did Lily find\\?\\s*"));
  EXPECT_LT(result["tokens_after"].get<int>(), result["tokens_before"].get<int>());
  EXPECT_GT(result["generation_seconds"].get<double>(), 0);
  EXPECT_EQ(result["scoring_seconds"], 0);
  const Finished report =
      hearth({"compress", "-m", kPromptModel, "-f", file(), "--entities", schema});
  EXPECT_THAT(report.err, HasSubstr("generation took "));
  EXPECT_THAT(report.err, Not(HasSubstr("scoring took"))) << "nothing was scored";
}

// All of the text may be kept, but a summary was asked for.
TEST_F(PromptCommands, CompressSummarisesAtAnyRatio) {
  for (const char* ratio : {"0.5", "1"}) {
    const std::vector<std::string> arguments = {"compress", "-m",          kPromptModel, "-f",
                                                file(),     "--summarise", "--ratio",    ratio};
    const Finished report = hearth(arguments);
    ASSERT_EQ(report.exit_code, 0) << report.err;
    EXPECT_THAT(report.err, HasSubstr("the model's summary ")) << ratio;
    EXPECT_THAT(report.err, HasSubstr("generation took ")) << ratio;
    const auto result = hearth_json(arguments);
    EXPECT_TRUE(result["summarised"].is_boolean()) << result;
    EXPECT_GT(result["generation_seconds"].get<double>(), 0) << result;
  }
}

TEST_F(PromptCommands, CompressSaysWhyAShortTextIsNotSummarised) {
  const Finished report =
      hearth({"compress", "-m", kPromptModel, "-f", file(), "--summarise", "--min-tokens", "1000"});
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_THAT(report.err,
              HasSubstr("fewer than --min-tokens 1000, so the model does not summarise"));
  EXPECT_THAT(report.err, Not(HasSubstr("generation took")));
}

TEST_F(PromptCommands, ASchemaThatCannotBeUsedIsRefusedBeforeTheModelIsLoaded) {
  const std::string schema = (folder_ / "schema.json").string();
  const auto refused = [&](const char* text) {
    std::ofstream(schema) << text;
    const Finished result =
        hearth({"compress", "-m", "missing.gguf", "-f", file(), "--entities", schema});
    EXPECT_EQ(result.exit_code, 1);
    return result.err;
  };
  EXPECT_THAT(refused("{"), HasSubstr("schema.json"));
  EXPECT_THAT(refused(R"({"type":"array","items":{"type":"string"},"uniqueItems":true})"),
              HasSubstr("uniqueItems"));
  const Finished both = hearth({"compress", "-f", file(), "--entities", schema, "--ratio", "0.5"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--ratio"));
}

// JSON that is longer than the text would save nothing.
TEST_F(PromptCommands, EntitiesThatAreLongerThanTheTextAreRefused) {
  const std::string schema = (folder_ / "schema.json").string();
  std::ofstream(schema) << R"({"type":"string","minLength":2000})";
  const Finished result =
      hearth({"compress", "-m", kPromptModel, "-f", file(), "--entities", schema});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("longer than the text"));
}

TEST_F(PromptCommands, RatiosOf0And2AreRefused) {
  for (const std::string option : {"--ratio", "--question-ratio"})
    for (const char* ratio : {"0", "2", "-0.5"}) {
      const Finished result = hearth({"compress", "-f", file(), option, ratio});
      EXPECT_EQ(result.exit_code, 2) << option << ' ' << ratio;
      EXPECT_THAT(result.err, HasSubstr(option + ": a compression ratio is the share"));
      EXPECT_THAT(result.err, HasSubstr("above 0 and at most 1"));
    }
}

TEST_F(PromptCommands, RunReportsRepetition) {
  const Finished result = hearth(
      {"run", "-m", kPromptModel, "-p", "Once upon a time", "-n", "24", "--temp", "0", "--stats"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* line :
       {"distinct-1: 0.", "distinct-2: ", "distinct-3: ", "repetition rate: ", "mean surprisal: "})
    EXPECT_THAT(result.err, HasSubstr(line));
  EXPECT_THAT(result.err, Not(HasSubstr("guesses"))) << "no speculation";
}

TEST_F(PromptCommands, RunReportsRepetitionAsJson) {
  const std::vector<std::string> plain = {"run", "-m", kPromptModel, "-p", "Once upon a time",
                                          "-n",  "24", "--temp",     "0"};
  EXPECT_FALSE(hearth_json(plain).contains("stats"));
  std::vector<std::string> arguments = plain;
  arguments.push_back("--stats");
  const auto stats = hearth_json(arguments)["stats"];
  for (const char* share : {"distinct_1", "distinct_2", "distinct_3"}) {
    EXPECT_GT(stats[share].get<double>(), 0) << share;
    EXPECT_LE(stats[share].get<double>(), 1) << share;
  }
  EXPECT_GE(stats["repetition_rate"].get<double>(), 0);
  EXPECT_GT(stats["mean_surprisal"].get<double>(), 0);
}

TEST_F(PromptCommands, RunReportsGuesses) {
  // The prompt repeats itself, so there is something to guess.
  const std::vector<std::string> arguments = {
      "run",
      "-m",
      HEARTH_SOURCE_DIR "/models/default/hearth-storyteller-Q8_0.gguf",
      "-p",
      "Lily had a red ball. Tom had a red ball. Lily had a red",
      "-n",
      "16",
      "--temp",
      "0",
      "--deterministic",
      "--speculate",
      "ngram",
      "--stats"};
  const Finished result = hearth(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              ::testing::ContainsRegex("guesses: [0-9]+ made, [0-9]+ accepted; [0-9]+\\.[0-9]+ "
                                       "tokens per step with guesses\n"));
  const auto report = hearth_json(arguments);
  EXPECT_GT(report["proposed_tokens"], 0);
  const double per_step = report["tokens_per_step_with_guesses"].get<double>();
  EXPECT_GE(per_step, 1);
  EXPECT_EQ(per_step > 1, report["accepted_tokens"] > 0);
}

TEST_F(PromptCommands, RunKeepsBannedStringsOut) {
  const std::vector<std::string> plain = {"run", "-m", kPromptModel, "-p", "Once upon a time",
                                          "-n",  "40", "--temp",     "0"};
  const std::string text = hearth_json(plain)["text"];
  ASSERT_GT(text.size(), 20u);
  const std::string banned = text.substr(8, 6);
  std::vector<std::string> arguments = plain;
  arguments.insert(arguments.end(), {"--ban", banned});
  const auto result = hearth_json(arguments);
  EXPECT_THAT(result["text"].get<std::string>(), Not(HasSubstr(banned)));
  EXPECT_EQ(result["tokens"], result["ids"].size());
}

TEST_F(PromptCommands, AFullChatStopsOrIsCompressed) {
  std::string lines;
  for (int i = 0; i < 6; ++i)
    lines += "Tell me about the little girl who went to the park with her happy dog and a ball.\n";
  const auto chat = [&](const char* when_full) {
    return run_program({HEARTH_LAUNCHER, HEARTH_BINARY, "chat", "-m", kPromptModel, "--temp", "0",
                        "-n", "20", "--ctx", "192", "--when-full", when_full},
                       {}, lines);
  };
  const Finished stopped = chat("stop");
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("The context of 192 tokens is full. Type /reset"));
  const Finished compressed = chat("compress");
  EXPECT_EQ(compressed.exit_code, 0) << compressed.err;
  EXPECT_THAT(compressed.err, HasSubstr("earlier messages are shortened from"));
}

}  // namespace
}  // namespace hearth::testing
