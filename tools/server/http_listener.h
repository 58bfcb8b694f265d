// Listens, keeps connections, and hands every request to a service. An idle connection costs a file
// descriptor and no thread; an open request has a thread of its own, because streams last for
// minutes and must not hold up others.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "runtime/result.h"
#include "tools/server/http_connection.h"
#include "tools/server/http_reply.h"

namespace hearth {

struct HttpListenerOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: a free one
  HttpLimits limits = {};
  HttpWriteLimits write = {};
  uint64_t bodies_bytes = 128ull << 20;  // of all open requests' bodies
  size_t most_connections = 4096;
  HttpClock::duration idle_time = std::chrono::minutes(5);   // between two requests
  HttpClock::duration read_time = std::chrono::seconds(30);  // for a request, from its first byte
};

// Answers requests. Called on any thread, several at once.
struct HttpService {
  // Sees a request's headers before its body is read. False: it has replied, and wants no body.
  std::function<bool(const HttpRequest& head, HttpReply&)> admit;
  // May move the body out of the request, and release its memory.
  std::function<void(HttpRequest&, HttpReply&)> handle;
  // Replies to bytes that could not be read as a request.
  std::function<void(const HttpError&, HttpReply&)> refuse;
};

// "127.0.0.1:8080", or "[::1]:8080" for an IPv6 address, as in a URL.
std::string host_and_port(const std::string& host, int port);

class HttpListener {
 public:
  static Result<std::unique_ptr<HttpListener>> create(const HttpListenerOptions& options,
                                                      HttpService service);
  // close().
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  int port() const { return port_; }
  // Of open requests' bodies. A service may charge to it what it makes of them.
  MemoryBudget& budget() { return budget_; }

  // Replies close their connection from now on.
  void stop_keeping_alive() { keep_alive_ = false; }
  // Every client counts as gone from now on, so that open requests end soon.
  void abort() { aborted_ = true; }
  // Takes no more connections, ends idle ones, waits for open requests. Blocks.
  void close();

 private:
  struct IdleConnection {
    std::unique_ptr<HttpConnection> connection;
    HttpClock::time_point since;
  };
  using IdleMap = std::unordered_map<int, IdleConnection>;

  HttpListener(const HttpListenerOptions& options, HttpService service);
  Status listen();
  Status open_socket();

  // On the thread that waits for all sockets.
  void watch();
  void accept_all();
  void close_idle(HttpClock::time_point before);
  bool close_oldest_idle();
  // To a thread that serves the connection, and back.
  void start_serving(int socket);
  void keep(std::unique_ptr<HttpConnection> connection);
  void work();
  void serve(std::unique_ptr<HttpConnection> connection);
  // Serves one request. False: the connection has to be closed.
  bool serve_one(HttpConnection& connection);
  using Read =
      std::variant<HttpRequest, HttpError, HttpConnection::Refused, HttpConnection::Closed>;
  Read read(HttpConnection& connection, const HttpConnection::Admit& admit);
  void call_handler(HttpRequest& request, HttpReply& reply) const;

  const HttpListenerOptions options_;
  const HttpService service_;
  MemoryBudget budget_;
  int listener_ = -1, events_ = -1, wake_ = -1;
  int port_ = 0;
  std::atomic<bool> keep_alive_{true}, closing_{false}, aborted_{false};
  std::thread watcher_;

  std::mutex mutex_;
  std::condition_variable work_ready_, worker_gone_;
  IdleMap idle_;                                       // by socket
  std::deque<std::unique_ptr<HttpConnection>> queue_;  // to be served
  size_t connections_ = 0, workers_ = 0, free_workers_ = 0;
};

}  // namespace hearth
