// The program `hearth serve` in a process of its own, from start to exit. REQUIRES: HEARTH_BINARY
// is defined (tests/CMakeLists.txt).
#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/http_client.h"

namespace hearth::testing {

class Serving {
 public:
  static constexpr const char* kSmallestModel =
      HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

  // Waits until it listens; port() is 0 if it does not. `model` empty: the built-in one. `starter`:
  // the program that starts it, with its arguments.
  explicit Serving(std::vector<std::string> more = {}, const std::string& model = kSmallestModel,
                   std::vector<std::string> starter = {}) {
    std::vector<std::string> arguments = std::move(starter);
    arguments.insert(arguments.end(), {HEARTH_LAUNCHER, HEARTH_BINARY, "serve"});
    if (!model.empty()) arguments.insert(arguments.end(), {"-m", model});
    if (std::find(more.begin(), more.end(), "--port") == more.end())
      more.insert(more.end(), {"--port", "0"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    static int count = 0;
    log_path_ = ::testing::TempDir() + "/hearth_serve." + std::to_string(getpid()) + "." +
                std::to_string(++count) + ".log";
    process_ = fork();
    if (process_ == 0) {
      const int log = open(log_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(log, 2);
      std::vector<char*> pointers;
      for (std::string& argument : arguments) pointers.push_back(argument.data());
      pointers.push_back(nullptr);
      execv(pointers[0], pointers.data());
      _exit(127);
    }
    for (int i = 0; i < 6000 && port_ == 0 && !exited(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const std::string text = log();
      std::smatch match;
      if (std::regex_search(text, match, std::regex(R"(listening on http://[^:]+:(\d+))")))
        port_ = std::stoi(match[1]);
    }
  }
  ~Serving() {
    if (!exited()) {
      kill(process_, SIGKILL);
      wait();
    }
    std::remove(log_path_.c_str());
  }

  int port() const { return port_; }
  std::string log() const {
    std::ifstream file(log_path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void signal(int number) const { kill(process_, number); }
  // The exit status; 128 + the signal if one ended it.
  int wait() {
    if (!exit_) {
      int status = 0;
      waitpid(process_, &status, 0);
      exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return *exit_;
  }
  bool exited() {
    int status = 0;
    if (!exit_ && waitpid(process_, &status, WNOHANG) == process_)
      exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return exit_.has_value();
  }

  HttpAnswer get(const std::string& path, const std::string& headers = {}) const {
    return HttpClient(port_).get(path, headers);
  }
  HttpAnswer post(const std::string& path, const std::string& body,
                  const std::string& headers = {}) const {
    return HttpClient(port_).post(path, body, headers);
  }
  uint64_t metric(const std::string& name) const {
    const std::string text = get("/metrics").body;
    const size_t place = text.find("\n" + name + " ");
    if (place == std::string::npos) return ~uint64_t{0};
    return std::strtoull(text.c_str() + place + name.size() + 2, nullptr, 10);
  }
  // Waits for a metric to be `value`. Returns what it was last.
  uint64_t wait_for(const std::string& name, uint64_t value) const {
    uint64_t last = 0;
    for (int i = 0; i < 1000 && (last = metric(name)) != value; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return last;
  }
  uint64_t resident_bytes() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/statm");
    uint64_t all = 0, resident = 0;
    file >> all >> resident;
    return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }

 private:
  pid_t process_ = -1;
  int port_ = 0;
  std::optional<int> exit_;
  std::string log_path_;
};

}  // namespace hearth::testing
