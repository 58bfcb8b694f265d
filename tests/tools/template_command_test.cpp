// hearth template, as a user starts it.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/hearth_program.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

const std::string kTemplateModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

class TemplateCommand : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("hearth_template_" + std::to_string(getpid()));
};

TEST_F(TemplateCommand, PrintsTheTextAndNothingElse) {
  const std::string conversation =
      file("conversation.json", R"({"messages": [{"role": "user", "content": "Hi"}],
               "tools": [{"z": 1, "a": 2}], "kwargs": {"thinks": true}})");
  const std::string source =
      file("t.jinja",
           "{{ bos_token }}{{ messages[0].content }}{{ tools|tojson }}{{ thinks }}"
           "{{ strftime_now('%Y-%m-%d %H:%M') }}{{ add_generation_prompt }}{{ eos_token }}");
  const Finished result = hearth({"template", "--file", source, "--messages", conversation, "--bos",
                                  "<s>", "--eos", "</s>", "--now", "2026-11-17T12:00:00"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "<s>Hi[{\"z\": 1, \"a\": 2}]True2026-11-17 12:00True</s>");
}

TEST_F(TemplateCommand, TakesTheModelsOwnAndTellsOrigins) {
  const std::string conversation =
      file("conversation.json", R"([{"role": "user", "content": "Hi <|end|>"}])");
  const auto reply = hearth_json({"template", "-m", kTemplateModel, "--messages", conversation});
  EXPECT_THAT(reply["text"].get<std::string>(), HasSubstr("Hi <|end|>"));
  std::string from_conversation;
  for (const auto& run : reply["runs"])
    if (run["from"] == "conversation") from_conversation += run["text"].get<std::string>();
  EXPECT_EQ(from_conversation, "Hi <|end|>");
}

TEST_F(TemplateCommand, ATemplateFileTakesTheTokensOfANamedModel) {
  const std::string conversation = file("c.json", R"([{"role": "user", "content": "Hi"}])");
  const std::string source = file("t.jinja", "[{{ eos_token }}]");
  const auto rendered = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"template", "--file", source, "--messages", conversation};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished result = hearth(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(rendered({}), "[]");
  EXPECT_NE(rendered({"-m", kTemplateModel}), "[]");
  EXPECT_EQ(rendered({"-m", kTemplateModel, "--eos", "END"}), "[END]");
}

TEST_F(TemplateCommand, FailsInOneLine) {
  const std::string conversation = file("c.json", R"([{"role": "user", "content": "Hi"}])");
  const auto fails = [&](const std::string& source, const std::string& messages,
                         const std::string& reason) {
    const Finished result =
        hearth({"template", "--file", file("t.jinja", source), "--messages", messages});
    EXPECT_NE(result.exit_code, 0);
    EXPECT_EQ(result.out, "");
    expect_one_line(result.err);
    EXPECT_THAT(result.err, HasSubstr(reason));
  };
  fails("\n{{ raise_exception('No\nway') }}", conversation, "chat template: line 2: No way");
  fails("{% if %}", conversation, "chat template: line 1: expected an expression");
  fails("", conversation, "the template is empty");
  fails("x", file("bad.json", "{"), "expected JSON");
  fails("x", folder_ / "absent.json", "absent.json");
  const Finished time =
      hearth({"template", "-m", kTemplateModel, "--messages", conversation, "--now", "noon"});
  EXPECT_NE(time.exit_code, 0);
  EXPECT_THAT(time.err, HasSubstr("--now noon: expected a time"));
}

}  // namespace
}  // namespace hearth::testing
