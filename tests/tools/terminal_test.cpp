// What a person at a terminal sees: answers that break between words, and progress of long work.
#include <filesystem>
#include <iterator>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/hearth_program.h"
#include "tests/support/pseudo_terminal.h"

namespace hearth::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTerminalModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";
const std::string kErase = "\r\033[K";

FinishedOnTerminal hearth_on(int descriptor, std::vector<std::string> arguments,
                             unsigned short columns = 100, const std::string& input = {}) {
  arguments.insert(arguments.begin(), {HEARTH_LAUNCHER, HEARTH_BINARY});
  return run_on_terminal(arguments, descriptor, columns, input);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// What is left on the screen: a word that was shown in part and then moved to the next line has
// been erased by "\r\033[<column>C\033[K".
std::vector<std::string> screen_lines(const std::string& written) {
  std::vector<std::string> lines;
  std::istringstream stream(written);
  for (std::string line; std::getline(stream, line);) {
    if (const size_t erase = line.find("\r\033["); erase != std::string::npos)
      line.resize(std::stoul(line.substr(erase + 3)));
    lines.push_back(line);
  }
  return lines;
}

class Terminal : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_pseudo_terminals()) GTEST_SKIP() << "this machine has no pseudo-terminals";
  }
};

TEST_F(Terminal, AnswersBreakBetweenWords) {
  const std::vector<std::string> arguments = {"chat", "-m", kTerminalModel, "--temp", "0",
                                              "-n",   "60"};
  const std::string question = "Tell me a story about a fox.\n";
  std::vector<std::string> piped_arguments = arguments;
  piped_arguments.insert(piped_arguments.begin(), {HEARTH_LAUNCHER, HEARTH_BINARY});
  const Finished piped = run_program(piped_arguments, {}, question);
  ASSERT_EQ(piped.exit_code, 0) << piped.err;
  for (const uint16_t columns : {uint16_t{20}, uint16_t{33}}) {
    const auto shown = hearth_on(STDOUT_FILENO, arguments, columns, question);
    ASSERT_EQ(shown.exit_code, 0) << shown.other;
    const auto lines = screen_lines(shown.terminal);
    std::string text;
    for (const std::string& line : lines) {
      EXPECT_LE(line.size(), columns) << line;
      text += line + "\n";
    }
    EXPECT_EQ(words_of(text), words_of(piped.out)) << shown.terminal;
    EXPECT_GT(lines.size(), piped.out.size() / columns) << shown.terminal;
  }
}

// The line rewrites itself and is gone at the end; stdout has the result alone.
void expect_progress(const FinishedOnTerminal& result, const std::string& title) {
  EXPECT_EQ(result.exit_code, 0) << result.terminal;
  EXPECT_THAT(result.terminal, HasSubstr(kErase + title + " "));
  EXPECT_THAT(result.terminal, HasSubstr(" %"));
  EXPECT_THAT(result.terminal, EndsWith(kErase));
  EXPECT_THAT(result.terminal, Not(HasSubstr("\n")));
  EXPECT_THAT(result.other, Not(HasSubstr("\033")));
}

TEST_F(Terminal, PerplexityShowsItsProgress) {
  const auto result = hearth_on(STDERR_FILENO, {"perplexity", "-m", kTerminalModel, "-f",
                                                HEARTH_SOURCE_DIR "/models/default/held_out.txt",
                                                "--ctx", "64", "--chunks", "40", "--json"});
  expect_progress(result, "perplexity");
  expect_progress(result, "loading");
  EXPECT_THAT(result.terminal, HasSubstr(" of 40"));  // the last ones may come too fast to show
  EXPECT_TRUE(nlohmann::json::accept(result.other)) << result.other;
}

TEST_F(Terminal, QuantizeShowsItsProgress) {
  const std::string out = (std::filesystem::path(::testing::TempDir()) /
                           ("terminal_test." + std::to_string(getpid()) + ".gguf"))
                              .string();
  const auto result = hearth_on(STDERR_FILENO, {"quantize", kTerminalModel, out, "Q4_0"});
  std::filesystem::remove(out);
  expect_progress(result, "quantizing");
  EXPECT_THAT(result.terminal, HasSubstr("tensor 1 of "));
}

TEST_F(Terminal, BenchShowsItsProgress) {
  const auto result = hearth_on(STDERR_FILENO, {"bench", "-m", kTerminalModel, "-p", "16", "-n",
                                                "4", "--batch", "1,2", "--reps", "1", "--json"});
  expect_progress(result, "timing");
  EXPECT_THAT(result.terminal, HasSubstr("prompt of 16 tokens, run 1 of 2"));
  const auto reply = nlohmann::json::parse(result.other, nullptr, false);
  ASSERT_TRUE(reply.is_object()) << result.other;
  for (const auto& test : reply["results"])
    EXPECT_THAT(test["share_of"].get<std::string>(), ::testing::AnyOf("read", "flops", "matrix"));
}

}  // namespace
}  // namespace hearth::testing
