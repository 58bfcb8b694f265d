// What docs/teaching says a class will see is what the program prints.
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/process.h"

namespace hearth::testing {
namespace {

constexpr std::string_view kBlockIndent = "    ";
const std::string kTeachingFolder = HEARTH_SOURCE_DIR "/docs/teaching/";

std::vector<std::string> sheet_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> document(const std::string& name) {
  std::ifstream file(kTeachingFolder + name);
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return sheet_lines(text.str());
}

// Runs shell commands in which `hearth` is the program that was built.
class TeachingShell {
 public:
  TeachingShell() {
    std::filesystem::create_directory(folder_);
    std::filesystem::create_symlink(HEARTH_BINARY, folder_ / "hearth");
  }
  ~TeachingShell() { std::filesystem::remove_all(folder_); }

  Finished run(const std::string& command) const {
    const char* const path = std::getenv("PATH");
    return run_program({"/bin/bash", "-c", command},
                       {"PATH=" + folder_.string() + ":" + (path == nullptr ? "" : path)});
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("hearth_teaching_" + std::to_string(getpid()));
};

bool is_block_line(const std::string& line) { return line.starts_with(kBlockIndent); }

TEST(Teaching, ExpectedOutputIsWhatTheProgramPrints) {
  const TeachingShell shell;
  const std::vector<std::string> lines = document("solutions.md");
  const std::string prompt = std::string(kBlockIndent) + "$ ";
  size_t commands = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with(prompt)) continue;
    ++commands;
    const Finished result = shell.run(lines[i].substr(prompt.size()));
    EXPECT_EQ(result.exit_code, 0) << lines[i] << "\n" << result.err;
    size_t place = i + 1;
    for (const std::string& printed : sheet_lines(result.out)) {
      std::string expected = printed.empty() ? printed : std::string(kBlockIndent) + printed;
      while (expected.ends_with(' ')) expected.pop_back();
      ASSERT_LT(place, lines.size()) << lines[i];
      ASSERT_EQ(lines[place], expected)
          << "after " << lines[i] << "\nIf the new output is right: "
          << "docs/teaching/fill_in HEARTH docs/teaching/solutions.md";
      ++place;
    }
    const bool more =
        place < lines.size() && is_block_line(lines[place]) && !lines[place].starts_with(prompt);
    EXPECT_FALSE(more) << "line " << place + 1 << " was not printed by " << lines[i];
  }
  EXPECT_GE(commands, 25u);
}

// Numbers in `code` marks are quoted from the output before them, in the same section.
TEST(Teaching, NumbersInTheTextAreThoseOfTheOutput) {
  const std::regex quoted("`([0-9]+(\\.[0-9]+)?)`");
  std::string output;
  size_t checked = 0;
  for (const std::string& line : document("solutions.md")) {
    if (line.starts_with("#")) output.clear();
    if (is_block_line(line)) {
      output += line + " \n";
      continue;
    }
    for (std::sregex_iterator found(line.begin(), line.end(), quoted), end; found != end; ++found) {
      const std::string number = (*found)[1];
      ++checked;
      EXPECT_NE(output.find(" " + number + " "), std::string::npos)
          << number << " is not in the output above: " << line;
    }
  }
  EXPECT_GE(checked, 30u);
}

// The commands on the sheet and in the lessons work as they are printed.
TEST(Teaching, CommandsOfTheSheetWork) {
  const TeachingShell shell;
  size_t commands = 0;
  for (const std::string& line : document("exercises.md")) {
    if (!line.starts_with(std::string(kBlockIndent) + "hearth ")) continue;
    ++commands;
    EXPECT_EQ(shell.run(line).exit_code, 0) << line;
  }
  EXPECT_GE(commands, 12u);
  for (const auto& entry : std::filesystem::directory_iterator(HEARTH_SOURCE_DIR "/lessons")) {
    if (entry.path().extension() != ".txt") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("    hearth replay --simulate") &&
          line.find(".svg") == std::string::npos && line.find(".json") == std::string::npos) {
        EXPECT_EQ(shell.run(line).exit_code, 0) << entry.path() << ": " << line;
      }
  }
}

}  // namespace
}  // namespace hearth::testing
