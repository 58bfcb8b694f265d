// Runs a program whose stdout or stderr is a terminal, as a person has it.
#pragma once

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

namespace hearth::testing {

struct FinishedOnTerminal {
  int exit_code = -1;    // 128 + signal if one ended it
  std::string terminal;  // all that was written to the terminal
  std::string other;     // what went to the other one of stdout and stderr
};

// Whether this machine can open pseudo-terminals; a root without /dev/pts cannot.
inline bool has_pseudo_terminals() {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0) return false;
  const bool works = grantpt(master) == 0 && unlockpt(master) == 0;
  close(master);
  return works;
}

// `descriptor` is STDOUT_FILENO or STDERR_FILENO: the one that is a terminal, `columns` wide. The
// other one is a file, and `input` comes from a file. REQUIRES: no other threads.
inline FinishedOnTerminal run_on_terminal(const std::vector<std::string>& arguments, int descriptor,
                                          unsigned short columns, const std::string& input = {}) {
  const std::string base =
      (std::filesystem::temp_directory_path() / ("hearth-pty-" + std::to_string(getpid())))
          .string();
  const std::string input_path = base + ".in", other_path = base + ".out";
  std::ofstream(input_path, std::ios::binary) << input;

  FinishedOnTerminal finished;
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return finished;
  const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
  termios mode{};
  tcgetattr(terminal, &mode);
  cfmakeraw(&mode);  // newlines come as they were written
  tcsetattr(terminal, TCSANOW, &mode);
  winsize size{};
  size.ws_col = columns;
  size.ws_row = 24;
  ioctl(terminal, TIOCSWINSZ, &size);

  const pid_t child = fork();
  if (child == 0) {
    const int other = descriptor == STDOUT_FILENO ? STDERR_FILENO : STDOUT_FILENO;
    dup2(open(input_path.c_str(), O_RDONLY), STDIN_FILENO);
    dup2(open(other_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), other);
    dup2(terminal, descriptor);
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(terminal);
  std::array<char, 4096> bytes;
  // Reading fails once the program has closed its end.
  for (ssize_t count = 0; (count = read(master, bytes.data(), bytes.size())) > 0;)
    finished.terminal.append(bytes.data(), static_cast<size_t>(count));
  close(master);
  int status = 0;
  waitpid(child, &status, 0);
  finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::ifstream file(other_path, std::ios::binary);
  finished.other = {std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(input_path);
  std::filesystem::remove(other_path);
  return finished;
}

}  // namespace hearth::testing
