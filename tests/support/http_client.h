// An HTTP client on a plain socket, so that tests can also send malformed requests.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hearth::testing {

struct HttpAnswer {
  int status = 0;    // 0: no reply
  std::string head;  // as received
  std::string body;  // with chunks removed
  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
};

class HttpClient {
 public:
  explicit HttpClient(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~HttpClient() { close(socket_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool connected() const { return connected_; }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }
  void finish_sending() { shutdown(socket_, SHUT_WR); }
  // For clients that do not read: how much the kernel takes in their place. Before anything is
  // sent.
  void set_receive_buffer(int bytes) {
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
  }

  // Reads until `enough` has been received, the connection ends, or `seconds` pass.
  bool read_until(std::string_view enough, double seconds = 20) {
    while (received_.find(enough) == std::string::npos)
      if (!read_more(seconds)) return false;
    return true;
  }
  // Reads until more than `bytes` have been received; false if that does not happen.
  bool read_more_than(size_t bytes, double seconds = 20) {
    while (received_.size() <= bytes)
      if (!read_more(seconds)) return false;
    return true;
  }
  // Whether the server closes the connection in time.
  bool closed(double seconds = 20) {
    while (read_more(seconds)) {
    }
    return ended_;
  }
  const std::string& received() const { return received_; }

  // Reads one whole reply.
  HttpAnswer read(double seconds = 20) {
    HttpAnswer answer;
    constexpr std::string_view kContinue = "HTTP/1.1 100 ";
    do {
      if (answer.status == 100) received_.erase(0, answer.head.size());
      answer.status = 0;
      if (!read_until("\r\n\r\n", seconds)) return answer;
      answer.head = received_.substr(0, received_.find("\r\n\r\n") + 4);
      answer.status = std::atoi(answer.head.c_str() + 9);
    } while (answer.head.starts_with(kContinue));
    received_.erase(0, answer.head.size());
    const size_t length = answer.head.find("Content-Length: ");
    if (answer.head.find("chunked") != std::string::npos) {
      read_chunks(answer.body, seconds);
    } else if (length != std::string::npos) {
      const size_t size = std::strtoul(answer.head.c_str() + length + 16, nullptr, 10);
      while (received_.size() < size && read_more(seconds)) {
      }
      answer.body = received_.substr(0, size);
      received_.erase(0, size);
    } else if (answer.status != 204) {
      closed(seconds);
      answer.body = std::exchange(received_, {});
    }
    return answer;
  }

  HttpAnswer get(const std::string& path, const std::string& headers = {}) {
    send("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers + "\r\n");
    return read();
  }
  static std::string post_text(const std::string& path, const std::string& body,
                               const std::string& headers = {}) {
    return "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" +
           headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  HttpAnswer post(const std::string& path, const std::string& body,
                  const std::string& headers = {}) {
    send(post_text(path, body, headers));
    return read();
  }

 private:
  bool read_more(double seconds) {
    pollfd entry = {.fd = socket_, .events = POLLIN, .revents = 0};
    if (ended_ || poll(&entry, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
    char buffer[16384];
    const ssize_t count = recv(socket_, buffer, sizeof(buffer), 0);
    ended_ = count <= 0;
    if (!ended_) received_.append(buffer, static_cast<size_t>(count));
    return !ended_;
  }
  void read_chunks(std::string& body, double seconds) {
    for (;;) {
      if (!read_until("\r\n", seconds)) return;
      const size_t line = received_.find("\r\n");
      const size_t size = std::strtoul(received_.c_str(), nullptr, 16);
      while (received_.size() < line + 2 + size + 2)
        if (!read_more(seconds)) return;
      body += received_.substr(line + 2, size);
      received_.erase(0, line + 2 + size + 2);
      if (size == 0) return;
    }
  }

  const int socket_;
  bool connected_ = false, ended_ = false;
  std::string received_;
};

}  // namespace hearth::testing
