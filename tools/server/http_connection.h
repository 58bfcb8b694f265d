// One client's connection: reads requests and writes bytes, each with a deadline. Used by one
// thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "tools/server/http_parser.h"
#include "tools/server/memory_budget.h"

namespace hearth {

using HttpClock = std::chrono::steady_clock;

struct HttpReadOptions {
  HttpLimits limits;
  HttpClock::duration time;          // for a whole request, from its first byte
  MemoryBudget& budget;              // that bodies are charged to
  const std::atomic<bool>& closing;  // once true, bytes that have not arrived are not waited for
};

class HttpConnection {
 public:
  // Takes over a non-blocking socket. `peer` is the client's address, for the log. Once `aborted`
  // is true the client counts as gone: nothing waits for it any more.
  HttpConnection(int socket, std::string peer, const std::atomic<bool>& aborted);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  int socket() const { return socket_; }
  const std::string& peer() const { return peer_; }

  struct Closed {};   // there is no client to reply to
  struct Refused {};  // `admit` refused the request
  // Asked once per request, when its headers are complete and before its body is read. False: the
  // request has been answered.
  using Admit = std::function<bool(const HttpRequest& head, bool has_body)>;
  // Reads the next request.
  std::variant<HttpRequest, HttpError, Refused, Closed> read(const HttpReadOptions& options,
                                                             const Admit& admit);
  // Bytes of the next request have already arrived.
  bool has_more() const { return !input_.empty(); }

  // Writes everything. False: the client is gone, has read nothing for `patience`, or reads so
  // slowly that it would take much longer.
  bool write(std::string_view bytes, HttpClock::duration patience);
  // Writes as much as fits into the socket's buffer now; nothing: the client is gone.
  std::optional<size_t> write_some(std::string_view bytes);
  // Waits until write_some() can write, at most until `deadline`.
  bool wait_until_writable(HttpClock::time_point deadline) const;
  // The client has closed its side and waits for no reply.
  bool client_gone() const;
  // Announces the end of the reply and skips what the client still sends, for a second at most:
  // closing a socket with unread bytes would destroy the reply on its way.
  void linger();

 private:
  const int socket_;
  const std::string peer_;
  const std::atomic<bool>& aborted_;
  std::string input_;
};

}  // namespace hearth
