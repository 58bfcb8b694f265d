// hearth grammar, as a user starts it.
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

class GrammarCommand : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("hearth_grammar_" + std::to_string(getpid()));
};

const char kPerson[] =
    R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"]})";

TEST_F(GrammarCommand, ChecksManySchemas) {
  const std::string batch = file(
      "batch.jsonl",
      R"({"name": "one", "schema": {"type": "integer"}, "tests": [{"valid": true, "data": 7}, {"valid": false, "data": "x"}]})"
      "\n"
      R"({"name": "two", "schema": {"uniqueItems": true, "items": {"type": "string"}}, "tests": [{"valid": true, "data": []}]})"
      "\n\n");
  const auto json = hearth_json({"grammar", "--batch", batch});
  ASSERT_EQ(json["schemas"].size(), 2u);
  EXPECT_EQ(json["schemas"][0]["name"], "one");
  EXPECT_EQ(json["schemas"][0]["accepted"], nlohmann::json::array({true, false}));
  EXPECT_TRUE(json["schemas"][0]["refused"].is_null());
  EXPECT_GT(json["schemas"][0]["compile_us"], 0);
  EXPECT_GT(json["schemas"][0]["mask_us"]["mean"], 0);
  EXPECT_GE(json["schemas"][0]["mask_us"]["max"], json["schemas"][0]["mask_us"]["mean"]);
  EXPECT_TRUE(json["schemas"][1]["accepted"].is_null());
  EXPECT_THAT(json["schemas"][1]["refused"].get<std::string>(), HasSubstr("uniqueItems at #"));
}

TEST_F(GrammarCommand, ChecksOneText) {
  const std::string schema = file("person.json", kPerson);
  const std::string good = file("good.json", "{\n  \"name\": \"Ada\",\n  \"age\": 36\n}\n");
  EXPECT_EQ(hearth_json({"grammar", "--check", good, "--json-schema", schema})["accepted"], true);
  const std::string bad = file("bad.json", R"({"name": "Ada", "age": "36"})");
  EXPECT_EQ(hearth_json({"grammar", "--check", bad, "--json-schema", schema}, {}, 1)["accepted"],
            false);
  const Finished said = hearth({"grammar", "--check", bad, "--json-schema", schema});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_EQ(said.out, "");
  expect_one_line(said.err);
  EXPECT_THAT(said.err, HasSubstr(R"(may not follow "{\"name\":\"Ada\",\"age\":)"));
}

TEST_F(GrammarCommand, SaysWhereATextGoesWrong) {
  const std::string sum = file("sum.gbnf", "root ::= ([a-z]+ \"\\n\")+\n");
  const std::string text = file("text.txt", "one\ntwo\nthree3\n");
  const Finished said = hearth({"grammar", "--check", text, "--grammar", sum});
  EXPECT_THAT(said.err, HasSubstr("text.txt:3:6: not accepted: \"3\" may not follow \"one\\ntwo"));
  const std::string wrong = file("wrong.txt", "7");
  EXPECT_THAT(hearth({"grammar", "--check", wrong, "--grammar", sum}).err,
              HasSubstr("wrong.txt:1:1: not accepted: \"7\" may not come first"));
}

TEST_F(GrammarCommand, ABatchNamesWhatItComplainsAbout) {
  const std::string batch = file(
      "batch.jsonl",
      R"({"name": "fine", "schema": {"type": "integer"}, "tests": [{"valid": true, "data": 7}]})"
      "\n"
      R"({"name": "odd", "schema": {"type": "integer"}, "tests": [{"valid": true, "data": "x"}]})"
      "\n"
      R"({"name": "hard", "schema": {"uniqueItems": true, "items": {"type": "string"}}})"
      "\n");
  const Finished said = hearth({"grammar", "--batch", batch});
  EXPECT_EQ(said.exit_code, 0);
  EXPECT_THAT(said.out, HasSubstr("odd: invalid instances accepted: 0, valid ones not: 1\n"));
  EXPECT_THAT(said.out, HasSubstr("hard: refused: uniqueItems at #"));
  EXPECT_THAT(said.out, ::testing::Not(HasSubstr("fine")));
}

TEST_F(GrammarCommand, TellsWhyASchemaIsRefused) {
  const std::string schema = file("wrong.json", R"({"items": {"type": "strnig"}})");
  const std::string text = file("text.json", "[]");
  const auto json = hearth_json({"grammar", "--check", text, "--json-schema", schema}, {}, 1);
  EXPECT_TRUE(json["accepted"].is_null());
  EXPECT_EQ(json["refused"], "type at #/items: there is no type \"strnig\"");
}

TEST_F(GrammarCommand, PropertiesInAnyOrderIfAskedFor) {
  const std::string schema = file("person.json", kPerson);
  const std::string text = file("text.json", R"({"age": 36, "name": "Ada"})");
  EXPECT_EQ(hearth_json({"grammar", "--check", text, "--json-schema", schema}, {}, 1)["accepted"],
            false);
  EXPECT_EQ(
      hearth_json({"grammar", "--check", text, "--json-schema", schema, "--any-order"})["accepted"],
      true);
}

TEST_F(GrammarCommand, GrammarsAndRegularExpressions) {
  const std::string grammar = file("sum.gbnf", "root ::= [0-9]+ (\"+\" [0-9]+)*\n");
  const std::string text = file("sum.txt", "1+22+3");
  EXPECT_EQ(hearth_json({"grammar", "--check", text, "--grammar", grammar})["accepted"], true);
  EXPECT_EQ(hearth_json({"grammar", "--check", text, "--regex", "[0-9]+"}, {}, 1)["accepted"],
            false);
}

TEST_F(GrammarCommand, RefusesInOneLine) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"grammar"},
           {"grammar", "--json-schema", file("wrong.json", R"({"type": "strnig"})")},
           {"grammar", "--batch", file("wrong.jsonl", "{}\n")},
           {"grammar", "--grammar", file("wrong.gbnf", "root ::= (\n")}}) {
    const Finished result = hearth(arguments);
    EXPECT_NE(result.exit_code, 0);
    expect_one_line(result.err);
  }
}

}  // namespace
}  // namespace hearth::testing
