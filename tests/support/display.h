// A display without a screen: runs Xvfb for its lifetime.
#pragma once

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hearth::testing {

class Display {
 public:
  // Starts Xvfb on a free display number; name() is empty if Xvfb is not installed.
  explicit Display(const std::string& size = "1600x1000x24") {
    int numbers[2];
    if (::pipe(numbers) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      ::close(numbers[0]);
      const int nowhere = ::open("/dev/null", O_RDWR);
      ::dup2(nowhere, STDOUT_FILENO);
      ::dup2(nowhere, STDERR_FILENO);
      const std::string descriptor = std::to_string(numbers[1]);
      ::execlp("Xvfb", "Xvfb", "-displayfd", descriptor.c_str(), "-screen", "0", size.c_str(),
               "-nolisten", "tcp", static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(numbers[1]);
    // Xvfb writes the number once it is ready; a missing program writes nothing.
    std::string name(1, ':');
    for (char letter = 0; ::read(numbers[0], &letter, 1) == 1 && letter != '\n';) name += letter;
    ::close(numbers[0]);
    if (name.size() > 1) name_ = std::move(name);
  }
  ~Display() {
    if (process_ <= 0) return;
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
  }
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  const std::string& name() const { return name_; }

 private:
  pid_t process_ = -1;
  std::string name_;
};

}  // namespace hearth::testing
