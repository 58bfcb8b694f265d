// A server that replies as a test says, for tests of clients: every connection has a thread, takes
// one request and is closed after its reply.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hearth::testing {

class ScriptedPeer {
 public:
  struct Asked {
    std::string method, path, head, body;
    size_t number = 0;  // of the request, from 0, over all paths
  };
  // The connection, while a script runs.
  class Wire {
   public:
    explicit Wire(int socket, std::atomic<size_t>* at_once = nullptr)
        : socket_(socket), at_once_(at_once) {}
    // False: the client is gone.
    bool send(std::string_view bytes) const {
      return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(bytes.size());
    }
    void pause(double seconds) const {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    }
    // A whole reply.
    void reply(int status, const std::string& body, const std::string& headers = {}) const {
      leave();
      send("HTTP/1.1 " + std::to_string(status) + " Status\r\n" + headers +
           "Content-Type: application/json\r\nConnection: close\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body);
    }
    // A stream in chunks, as HTTP calls them: its head, parts, and its end.
    void begin_stream() const {
      send(
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
          "Transfer-Encoding: chunked\r\n\r\n");
    }
    bool event(const std::string& data) const {
      const std::string text = "data: " + data + "\n\n";
      char size[32];
      std::snprintf(size, sizeof(size), "%zx\r\n", text.size());
      return send(size + text + "\r\n");
    }
    void end_stream() const {
      leave();
      send("0\r\n\r\n");
    }
    // The request is no longer being answered. Comes before the last bytes, because with them the
    // client may send its next request.
    void leave() const {
      if (at_once_ != nullptr && !std::exchange(left_, true)) --*at_once_;
    }

   private:
    const int socket_;
    std::atomic<size_t>* const at_once_;
    mutable bool left_ = false;
  };
  using Script = std::function<void(const Asked&, const Wire&)>;

  explicit ScriptedPeer(Script script) : script_(std::move(script)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 64), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedPeer() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    close(listener_);
    for (std::thread& thread : threads_) thread.join();
  }
  ScriptedPeer(const ScriptedPeer&) = delete;
  ScriptedPeer& operator=(const ScriptedPeer&) = delete;

  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // The most requests that were being answered at the same time.
  size_t most_at_once() const { return most_at_once_; }
  std::vector<Asked> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  void accept_all() {
    for (;;) {
      const int client = accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      threads_.emplace_back([this, client] {
        answer(client);
        shutdown(client, SHUT_WR);
        close(client);
      });
    }
  }

  void answer(int client) {
    Asked asked;
    if (!read_request(client, asked)) return;
    const size_t at_once = ++at_once_;
    {
      const std::lock_guard lock(mutex_);
      most_at_once_ = std::max(most_at_once_.load(), at_once);
      asked.number = asked_.size();
      asked_.push_back(asked);
    }
    const Wire wire(client, &at_once_);
    script_(asked, wire);
    wire.leave();
  }

  static bool read_request(int client, Asked& asked) {
    std::string bytes;
    size_t head_end = std::string::npos, body_size = 0;
    for (;;) {
      char buffer[4096];
      const ssize_t count = recv(client, buffer, sizeof(buffer), 0);
      if (count <= 0) return false;
      bytes.append(buffer, static_cast<size_t>(count));
      constexpr char kTlsHandshake = 0x16;
      if (bytes.front() == kTlsHandshake) {
        Wire(client).reply(400, "this is not HTTP");
        return false;
      }
      if (head_end == std::string::npos) {
        head_end = bytes.find("\r\n\r\n");
        if (head_end == std::string::npos) continue;
        const size_t length = bytes.find("Content-Length: ");
        if (length < head_end) body_size = std::strtoul(bytes.c_str() + length + 16, nullptr, 10);
      }
      if (bytes.size() >= head_end + 4 + body_size) break;
    }
    asked.head = bytes.substr(0, head_end + 2);
    asked.body = bytes.substr(head_end + 4, body_size);
    const size_t space = asked.head.find(' ');
    asked.method = asked.head.substr(0, space);
    asked.path = asked.head.substr(space + 1, asked.head.find(' ', space + 1) - space - 1);
    return true;
  }

  const Script script_;
  int listener_ = -1, port_ = 0;
  std::thread acceptor_;
  std::vector<std::thread> threads_;  // of acceptor_, until it has ended
  std::atomic<size_t> at_once_{0}, most_at_once_{0};
  mutable std::mutex mutex_;
  std::vector<Asked> asked_;
};

}  // namespace hearth::testing
