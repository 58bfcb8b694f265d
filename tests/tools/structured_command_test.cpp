// Structured output as a user starts it: hearth run and hearth bench with a schema, a grammar or a
// regular expression.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/hearth_program.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

const std::string kStructuredModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

class StructuredCommand : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  std::string person() const {
    return file("person.json", R"({"type": "object", "additionalProperties": false,
        "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer",
        "minimum": 1, "maximum": 99}}, "required": ["name", "age"]})");
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("hearth_structured_" + std::to_string(getpid()));
};

TEST_F(StructuredCommand, TheBuiltInModelWritesJsonForASchema) {
  const auto run = hearth_json({"run", "--chat", "Tell me about a girl.", "-n", "200", "--seed",
                                "3", "--json-schema", person()});
  EXPECT_EQ(run["finish_reason"], "stop");
  EXPECT_GT(run["forced_tokens"], 0);
  const auto written = nlohmann::json::parse(run["text"].get<std::string>(), nullptr, false);
  ASSERT_TRUE(written.is_object()) << run;
  EXPECT_TRUE(written["name"].is_string());
  EXPECT_TRUE(written["age"] >= 1 && written["age"] <= 99);
}

TEST_F(StructuredCommand, GrammarsAndRegularExpressions) {
  const auto text = [&](const std::string& option, const std::string& value) {
    return hearth_json(
               {"run", "-m", kStructuredModel, "-p", "a", "-n", "40", option, value})["text"]
        .get<std::string>();
  };
  EXPECT_THAT(text("--regex", "[a-c]{4}"), ::testing::MatchesRegex("[a-c]{4}"));
  EXPECT_THAT(text("--grammar", file("sum.gbnf", "root ::= [0-9] \"+\" [0-9]\n")),
              ::testing::MatchesRegex("[0-9]\\+[0-9]"));
  EXPECT_THAT(text("--grammar", file("sum.lark", "start: N \"-\" N\nN: /[0-9]/\n")),
              ::testing::MatchesRegex("[0-9]-[0-9]"));
}

// So that the output can be piped into a program that reads JSON.
TEST_F(StructuredCommand, OnlyTheJsonIsOnStandardOutput) {
  const Finished run = hearth({"run", "-m", kStructuredModel, "-p", "Once upon a time", "-n", "200",
                               "--json-schema", person()});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_TRUE(nlohmann::json::accept(run.out)) << run.out;
  EXPECT_THAT(run.err, ::testing::Not(HasSubstr("not complete")));
  const Finished cut = hearth({"run", "-m", kStructuredModel, "-p", "Once upon a time", "-n", "3",
                               "--json-schema", person()});
  EXPECT_THAT(cut.out, ::testing::StartsWith("{\"n"));
  EXPECT_THAT(cut.err, HasSubstr("the text is not complete: -n 3 cut it off"));
}

TEST_F(StructuredCommand, WhatCannotBeEnforcedIsRefusedInOneLine) {
  const std::string tags =
      file("tags.json", R"({"properties": {"tags": {"items": {"type": "string"},
                            "type": "array", "uniqueItems": true}}})");
  const Finished refused = hearth({"run", "-p", "a", "--json-schema", tags});
  EXPECT_EQ(refused.exit_code, 1);
  expect_one_line(refused.err);
  EXPECT_THAT(refused.err, HasSubstr("tags.json: uniqueItems at #/properties/tags"));
  EXPECT_EQ(hearth({"run", "-p", "a", "--regex", "("}).exit_code, 1);
  EXPECT_EQ(hearth({"run", "-p", "a", "--regex", "a", "--json-schema", tags}).exit_code, 2);
}

TEST_F(StructuredCommand, BenchComparesWithUnconstrainedStreams) {
  const auto reply = hearth_json({"bench", "-m", kStructuredModel, "-p", "0", "-n", "40", "--batch",
                                 "1,3", "--reps", "1", "--json-schema", person()});
  int constrained = 0;
  for (const auto& result : reply["results"]) {
    if (result["test"] != "constrained") continue;
    ++constrained;
    EXPECT_GT(result["ratio"], 0);
    EXPECT_GT(result["forced_share"], 0);
    EXPECT_GT(result["steps_share"], 0);
  }
  EXPECT_EQ(constrained, 2);
}

}  // namespace
}  // namespace hearth::testing
