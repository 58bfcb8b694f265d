// A server with TLS and a certificate that nobody trusts, for tests of clients: openssl's test
// server, which sends files of a folder as whole HTTP responses.
#pragma once

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include "tests/support/process.h"

namespace hearth::testing {

class TlsPeer {
 public:
  // `response` is what it sends for /events, headers included.
  explicit TlsPeer(const std::string& response) {
    std::string folder = (std::filesystem::temp_directory_path() / "hearth-tls-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) return;
    folder_ = folder;
    std::ofstream(folder + "/events") << response;
    // The name of the file is the whole address.
    std::ofstream(folder + "/events?history=10000") << response;
    const Finished made =
        run_program({"/bin/sh", "-c",
                     "cd " + folder +
                         " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
                         "-nodes -keyout "
                         "key.pem -out cert.pem -days 2 -subj /CN=localhost -addext "
                         "subjectAltName=IP:127.0.0.1"});
    if (made.exit_code != 0) return;
    const std::string command =
        "cd " + folder +
        " && echo $$ && exec timeout 60 openssl s_server -accept 127.0.0.1:0 -key key.pem -cert "
        "cert.pem -HTTP 2>/dev/null";
    output_ = popen(command.c_str(), "r");
    char line[256];
    if (output_ == nullptr || std::fgets(line, sizeof(line), output_) == nullptr) return;
    process_ = std::atoi(line);
    const std::string start = "ACCEPT 127.0.0.1:";
    while (port_ == 0 && std::fgets(line, sizeof(line), output_) != nullptr)
      if (std::string(line).starts_with(start)) port_ = std::atoi(line + start.size());
  }
  ~TlsPeer() {
    if (process_ > 0) kill(process_, SIGTERM);
    if (output_ != nullptr) pclose(output_);
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  TlsPeer(const TlsPeer&) = delete;
  TlsPeer& operator=(const TlsPeer&) = delete;

  // False if openssl is not installed.
  bool runs() const { return port_ != 0; }
  int port() const { return port_; }
  std::string certificate() const { return folder_ + "/cert.pem"; }

 private:
  std::string folder_;
  FILE* output_ = nullptr;
  pid_t process_ = 0;
  int port_ = 0;
};

}  // namespace hearth::testing
