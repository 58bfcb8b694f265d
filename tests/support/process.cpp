#include "tests/support/process.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <sys/wait.h>
#include <unistd.h>

namespace hearth::testing {
namespace {

std::string quoted(const std::string& text) {
  std::string result(1, '\'');
  for (const char c : text) {
    if (c == '\'') result.append("'\\'");
    result.push_back(c);
  }
  result.push_back('\'');
  return result;
}

std::string read_all(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

Finished run_program(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment, const std::string& input) {
  // Several may run at a time, each in a thread of its own.
  static std::atomic<int> started{0};
  const auto base =
      std::filesystem::temp_directory_path() /
      ("hearth-test-" + std::to_string(getpid()) + "-" + std::to_string(started.fetch_add(1)));
  const std::string out = base.string() + ".out", err = base.string() + ".err",
                    in = base.string() + ".in";
  std::ofstream(in, std::ios::binary) << input;
  std::string command = "cat " + quoted(in) + " | env";
  for (const std::string& variable : environment) command.append(" ").append(quoted(variable));
  for (const std::string& argument : arguments) command.append(" ").append(quoted(argument));
  command.append(" >").append(quoted(out)).append(" 2>").append(quoted(err));
  const int status = std::system(command.c_str());

  Finished finished;
  finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  finished.out = read_all(out);
  finished.err = read_all(err);
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  std::filesystem::remove(in);
  return finished;
}

}  // namespace hearth::testing
