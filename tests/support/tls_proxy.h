// HAProxy with TLS and a certificate that nobody trusts, in front of a server on this machine.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/http_client.h"
#include "tests/support/process.h"

namespace hearth::testing {

// A port that was free a moment ago.
inline int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool bound = bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(socket);
  return bound ? ntohs(address.sin_port) : 0;
}

class TlsProxy {
 public:
  // Waits until it accepts connections. `folder` is where its files go.
  TlsProxy(int server_port, const std::filesystem::path& folder) : folder_(folder.string()) {
    const Finished made =
        run_program({"/bin/sh", "-c",
                     "command -v haproxy >/dev/null && cd " + folder_ +
                         " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
                         "-nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost -addext "
                         "subjectAltName=IP:127.0.0.1 && cat cert.pem key.pem >both.pem"});
    if (made.exit_code != 0) return;
    installed_ = true;
    const int port = free_port();
    std::ofstream(folder_ + "/haproxy.cfg")
        << "defaults\n  mode http\n  timeout connect 5s\n  timeout client 1h\n"
        << "  timeout server 1h\nlisten tls\n  bind 127.0.0.1:" << port << " ssl crt " << folder_
        << "/both.pem\n  server one 127.0.0.1:" << server_port << "\n";
    process_ = fork();
    if (process_ == 0) {
      const int log = open((folder_ + "/haproxy.log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(log, 1);
      dup2(log, 2);
      execlp("haproxy", "haproxy", "-db", "-f", (folder_ + "/haproxy.cfg").c_str(),
             static_cast<char*>(nullptr));
      _exit(127);
    }
    for (int i = 0; i < 1000 && port_ == 0; ++i) {
      if (HttpClient(port).connected()) port_ = port;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  ~TlsProxy() {
    if (process_ <= 0) return;
    kill(process_, SIGTERM);
    waitpid(process_, nullptr, 0);
  }
  TlsProxy(const TlsProxy&) = delete;
  TlsProxy& operator=(const TlsProxy&) = delete;

  // Whether haproxy and openssl are.
  bool installed() const { return installed_; }
  bool runs() const { return port_ != 0; }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
  std::string certificate() const { return folder_ + "/cert.pem"; }

 private:
  std::string folder_;
  bool installed_ = false;
  pid_t process_ = 0;
  int port_ = 0;
};

}  // namespace hearth::testing
