// hearth chat as a script uses it: lines come over a pipe, answers go to stdout and everything else
// to stderr.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/hearth_program.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kChatModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";
constexpr const char* kOtherModel =
    HEARTH_SOURCE_DIR "/models/default/hearth-storyteller-Q8_0.gguf";

class ChatCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("chat_command_test." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Greedy, so that the same question gets the same answer.
  Finished chat(const std::string& lines, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {HEARTH_LAUNCHER, HEARTH_BINARY, "chat", "--temp", "0"};
    if (std::find(more.begin(), more.end(), "-m") == more.end())
      more.insert(more.end(), {"-m", kChatModel});
    if (std::find(more.begin(), more.end(), "-n") == more.end())
      more.insert(more.end(), {"-n", "12"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished result = run_program(arguments, {}, lines);
    for (const std::string& text : {result.out, result.err})
      EXPECT_EQ(text.find('\033'), std::string::npos) << "an escape code: " << text;
    return result;
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  nlohmann::json saved(const char* name) const {
    std::ifstream file(path(name));
    return nlohmann::json::parse(file, nullptr, false);
  }

  std::filesystem::path folder_;
};

TEST_F(ChatCommand, AnswersAPipeWithNothingElseOnStdout) {
  const Finished result = chat("Tell me a story.\n\n/help\nTell me a story about a fox.");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto answers = lines_of(result.out);
  ASSERT_THAT(answers, SizeIs(2)) << result.out;
  for (const std::string& answer : answers) EXPECT_FALSE(answer.empty());
  EXPECT_THAT(result.err, HasSubstr("/retry"));
  EXPECT_THAT(result.err, Not(HasSubstr("tokens/s")));
}

TEST_F(ChatCommand, RetryUndoEditAndReset) {
  const Finished result = chat(
      "/retry\n/undo\n/edit Hello\n"
      "Tell me a story.\n/retry\n/edit\n/edit Hello!\n/save " +
      path("edited") + "\n/undo\n/save " + path("undone") +
      "\n/system Be kind.\n/system\nHello!\n" + "/reset\n/save " + path("reset") +
      "\nHello!\n/frobnicate\n/rest\n");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto answers = lines_of(result.out);
  ASSERT_THAT(answers, SizeIs(5)) << result.out << result.err;
  EXPECT_EQ(answers[0], answers[1]) << "the same question again";
  EXPECT_NE(answers[1], answers[2]) << "another question";
  EXPECT_THAT(
      lines_of(result.err),
      ElementsAre("There is no question yet.", "There is nothing to undo.",
                  "There is no question yet.",
                  "/edit needs the new question, as in /edit Who are you?", "Saved 2 messages.",
                  "Removed: Hello!", "Saved 0 messages.", "The system prompt is set.", "Be kind.",
                  "The conversation is forgotten.", "Saved 0 messages.",
                  "There is no command /frobnicate. Type /help for a list.",
                  "There is no command /rest. Did you mean /reset?"));
  const auto edited = saved("edited");
  EXPECT_EQ(edited["messages"][0]["content"], "Hello!");
  EXPECT_EQ(edited["messages"][1]["content"], answers[2]);
  EXPECT_EQ(saved("reset")["system"], "Be kind.") << "only the messages are forgotten";
}

TEST_F(ChatCommand, SettingsTakeEffectOrAreRefused) {
  const Finished result = chat(
      "Tell me a story.\n/set tokens=3\n/retry\n/set --temp 1.5\n/set seed 7\n/set temp=-1\n"
      "/set top_p=2\n/set temp=warm\n/set warmth=1\n/set temp\n/set\n");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto answers = lines_of(result.out);
  ASSERT_THAT(answers, SizeIs(2)) << result.out;
  EXPECT_LT(answers[1].size(), answers[0].size());
  EXPECT_TRUE(answers[0].starts_with(answers[1])) << result.out;
  const auto told = lines_of(result.err);
  ASSERT_GT(told.size(), 8u) << result.err;
  EXPECT_EQ(told[0], "tokens = 3");
  EXPECT_EQ(told[1], "temp = 1.5");
  EXPECT_EQ(told[2], "seed = 7");
  EXPECT_THAT(told[3], HasSubstr("temperature must be"));
  EXPECT_THAT(told[4], HasSubstr("top_p must be"));
  EXPECT_EQ(told[5], "'warm' is not a valid value for temp.");
  EXPECT_THAT(told[6], HasSubstr("There is no setting 'warmth'"));
  EXPECT_THAT(told[7], HasSubstr("/set temp needs a value"));
  const std::vector<std::string> shown(told.begin() + 8, told.end());
  EXPECT_THAT(shown, ::testing::Contains("temp = 1.5"));
  EXPECT_THAT(shown, ::testing::Contains("seed = 7"));
  EXPECT_THAT(shown, ::testing::Contains("min-p = 0.05")) << "a default";
}

TEST_F(ChatCommand, SeveralWordsLeave) {
  for (const char* word : {"/bye", "/exit", "/quit", "/bye "}) {
    const Finished result = chat(std::string(word) + "\nHello!\n");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "") << word;
    EXPECT_EQ(result.err, "") << word;
  }
}

TEST_F(ChatCommand, HelpListsEveryCommandOnce) {
  const Finished result = chat("/help\n/?\n/bye\n");
  const auto lines = lines_of(result.err);
  for (const char* command : {"/help", "/model", "/set", "/system", "/retry", "/edit", "/undo",
                              "/reset", "/save", "/load", "/stats", "/bye"})
    EXPECT_EQ(std::ranges::count_if(
                  lines, [&](const std::string& line) { return line.starts_with(command); }),
              2)
        << command << " in each of the two lists";
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
}

TEST_F(ChatCommand, AnotherModelGoesOnWithTheConversation) {
  const Finished result = chat("Tell me a story.\n/model\n/model " + std::string(kOtherModel) +
                               "\n/save " + path("kept") + "\nHello!\n");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto answers = lines_of(result.out);
  ASSERT_THAT(answers, SizeIs(2)) << result.out << result.err;
  const auto told = lines_of(result.err);
  ASSERT_THAT(told, SizeIs(3)) << result.err;
  EXPECT_THAT(told[0], HasSubstr("hearth-tiny"));
  EXPECT_THAT(told[1], HasSubstr("hearth-storyteller"));
  EXPECT_EQ(saved("kept")["messages"].size(), 2u);
  // As if it had been asked from the start.
  const Finished alone = chat("Hello!\n", {"-m", kOtherModel, "--load", path("kept")});
  EXPECT_THAT(lines_of(alone.out), ElementsAre(answers[1])) << alone.err;
}

TEST_F(ChatCommand, AModelThatCannotBeLoadedLeavesTheOldOne) {
  std::ofstream(path("broken.gguf")) << "GGUF and nothing else";
  const Finished result = chat("Tell me a story.\n/model " + path("missing.gguf") + "\n/model " +
                               path("broken.gguf") + "\n/retry\n");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto answers = lines_of(result.out);
  ASSERT_THAT(answers, SizeIs(2)) << result.out << result.err;
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_THAT(result.err, HasSubstr("missing.gguf"));
  EXPECT_THAT(result.err, HasSubstr("broken.gguf"));
  EXPECT_THAT(result.err, HasSubstr("Still using hearth-tiny-Q8_0."));
}

TEST_F(ChatCommand, ContinuesASavedConversation) {
  const Finished first =
      chat("Tell me a story.\n/save " + path("kept") + "\nHello!\n", {"--system", "Be kind."});
  const auto answers = lines_of(first.out);
  ASSERT_THAT(answers, SizeIs(2)) << first.out << first.err;
  EXPECT_EQ(saved("kept")["system"], "Be kind.");
  // Loaded by a command or by an option, whatever was said before.
  const Finished by_command = chat("Hi there.\n/load " + path("kept") + "\nHello!\n");
  ASSERT_THAT(lines_of(by_command.out), SizeIs(2)) << by_command.out;
  EXPECT_EQ(lines_of(by_command.out)[1], answers[1]);
  EXPECT_THAT(by_command.err, HasSubstr("Loaded 2 messages."));
  const Finished by_option = chat("Hello!\n", {"--load", path("kept")});
  EXPECT_THAT(lines_of(by_option.out), ElementsAre(answers[1]));
}

TEST_F(ChatCommand, ABrokenFileGivesOneLineAndTheConversationGoesOn) {
  std::ofstream(path("broken")) << "{\"messages\": [";
  const Finished result = chat("/load " + path("broken") + "\n/load\n/save\n/save " + path("") +
                               "missing/file\nHello!\n");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(lines_of(result.out), SizeIs(1));
  EXPECT_THAT(lines_of(result.err),
              ElementsAre(path("broken") + ": not a conversation saved by hearth chat",
                          "/load needs a file name.", "/save needs a file name.",
                          "cannot write " + path("") + "missing/file: No such file or directory"));
  const Finished at_start = chat("Hello!\n", {"--load", path("broken")});
  EXPECT_EQ(at_start.exit_code, 1);
  expect_one_line(at_start.err);
  EXPECT_TRUE(at_start.out.empty());
}

TEST_F(ChatCommand, SaysWhatItLeavesOutWhenTheContextIsFull) {
  std::string lines;
  for (int i = 0; i < 6; ++i) lines += "Tell me a story about a fox and a bee.\n";
  const Finished result = chat(lines, {"-c", "96", "-n", "20"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(lines_of(result.out), SizeIs(6)) << result.out;
  EXPECT_THAT(result.err,
              HasSubstr("(The context of 96 tokens is full: the oldest 2 messages are left out.)"));
  // A question too long for the context is refused, and the next one is answered.
  std::string long_question;
  for (int i = 0; i < 200; ++i) long_question += "fox ";
  const Finished refused =
      chat(long_question + "\nHello!\n/save " + path("kept") + "\n", {"-c", "96"});
  EXPECT_EQ(refused.exit_code, 0) << refused.err;
  EXPECT_THAT(lines_of(refused.out), SizeIs(1));
  EXPECT_THAT(refused.err, HasSubstr("the context holds 96"));
  EXPECT_EQ(saved("kept")["messages"].size(), 2u) << "it is removed";
  // An answer that reaches the end of the context says so.
  const Finished cut = chat("Tell me a story about a fox and a bee.\n", {"-c", "48", "-n", "0"});
  EXPECT_THAT(cut.err, HasSubstr("(The context of 48 tokens is full: the answer is cut off.)"));
}

TEST_F(ChatCommand, SeveralLinesAreOneQuestion) {
  const Finished result = chat("\"\"\"\nHello!\nAnd hello again.\n\"\"\"\nHello \\\nthere\n/save " +
                               path("kept") + "\n");
  ASSERT_THAT(lines_of(result.out), SizeIs(2)) << result.out;
  EXPECT_EQ(saved("kept")["messages"][0]["content"], "Hello!\nAnd hello again.\n");
  EXPECT_EQ(saved("kept")["messages"][2]["content"], "Hello \nthere");
}

TEST_F(ChatCommand, ATextInQuotesIsNotACommand) {
  const Finished result = chat("\"\"\"\n/quit\n\"\"\"\n/save " + path("kept") + "\n");
  EXPECT_THAT(lines_of(result.out), SizeIs(1)) << result.out;
  EXPECT_EQ(saved("kept")["messages"][0]["content"], "/quit\n");
}

TEST_F(ChatCommand, ContrastiveSearchNeedsAFewCandidates) {
  const Finished result = chat("", {"--penalty-alpha", "0.6", "--top-k", "40"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--penalty-alpha: needs --top-k between 2 and 20, not 40"));
}

}  // namespace
}  // namespace hearth::testing
