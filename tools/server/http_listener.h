// Listens, keeps connections, and calls the handler for every request. A connection that is idle
// costs a file descriptor and no thread; a request that is being served has a thread of its own,
// since streams last for minutes and nobody should wait behind them.
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

namespace hearth {

struct HttpListenerOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any that is free
  HttpLimits limits = {};
  size_t most_connections = 4096;
  HttpClock::duration idle_time = std::chrono::minutes(5);    // between two requests
  HttpClock::duration read_time = std::chrono::seconds(30);   // a request, from its first byte
  HttpClock::duration write_time = std::chrono::seconds(30);  // without the client reading
};

// As it stands in a URL, where a host of numbers and colons is in brackets.
std::string host_and_port(const std::string& host, int port);

class HttpListener {
 public:
  // Called on any thread, several at once.
  using Handler = std::function<void(const HttpRequest&, HttpReply&)>;
  // For what could not be read as a request.
  using Refusal = std::function<void(const HttpError&, HttpReply&)>;

  static Result<std::unique_ptr<HttpListener>> create(const HttpListenerOptions& options,
                                                      Handler handler, Refusal refusal);
  // close().
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  int port() const { return port_; }

  // Replies close their connection from now on.
  void stop_keeping_alive() { keep_alive_ = false; }
  // Takes no more connections, ends idle ones, waits for the requests under way. Blocks.
  void close();

 private:
  struct Kept {
    std::unique_ptr<HttpConnection> connection;
    HttpClock::time_point since;
  };
  using IdleMap = std::unordered_map<int, Kept>;

  HttpListener(const HttpListenerOptions& options, Handler handler, Refusal refusal);
  Status listen();
  Status open_socket();

  // The thread that waits for all sockets.
  void watch();
  void accept_all();
  void close_idle(HttpClock::time_point before);
  bool make_room();
  // To a thread that serves it, and back.
  void start_serving(int socket);
  void keep(std::unique_ptr<HttpConnection> connection);
  void work();
  void serve(std::unique_ptr<HttpConnection> connection);
  // False: the connection is at its end.
  bool serve_one(HttpConnection& connection);
  std::variant<HttpRequest, HttpError, HttpConnection::Closed> read(
      HttpConnection& connection) const;
  void call_handler(const HttpRequest& request, HttpReply& reply) const;

  const HttpListenerOptions options_;
  const Handler handler_;
  const Refusal refusal_;
  int listener_ = -1, events_ = -1, wake_ = -1;
  int port_ = 0;
  std::atomic<bool> keep_alive_{true}, closing_{false};
  std::thread watcher_;

  std::mutex mutex_;
  std::condition_variable work_ready_, worker_gone_;
  IdleMap idle_;                                       // by socket
  std::deque<std::unique_ptr<HttpConnection>> queue_;  // to be served
  size_t connections_ = 0, workers_ = 0, free_workers_ = 0;
};

}  // namespace hearth
