// One client's connection: requests come in with a deadline, replies go out with another. Used by
// one thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "tools/server/http_parser.h"

namespace hearth {

using HttpClock = std::chrono::steady_clock;

class HttpConnection {
 public:
  // Takes the socket over, which does not block. `peer`: the client's address, for the log.
  HttpConnection(int socket, std::string peer);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  int socket() const { return socket_; }
  const std::string& peer() const { return peer_; }

  struct Closed {};  // there is nobody to reply to
  // The next request. All of it has to be there in time: who sends a byte now and then is told so.
  // Once `closing` is true what has not come yet is not waited for.
  std::variant<HttpRequest, HttpError, Closed> read(const HttpLimits& limits,
                                                    HttpClock::duration time,
                                                    const std::atomic<bool>& closing);
  // Bytes of the next request are here already.
  bool has_more() const { return !input_.empty(); }

  // False: the client is gone, or has read nothing for `patience`.
  bool write(std::string_view bytes, HttpClock::duration patience);
  // The client has closed its side: nobody waits for a reply.
  bool client_gone() const;
  // Says that nothing more comes, and reads over what the client still sends, briefly: to close
  // with bytes unread would take the reply away from it.
  void linger();

 private:
  const int socket_;
  const std::string peer_;
  std::string input_;
};

// The reply to one request, sent as a whole or in pieces.
class HttpReply {
 public:
  // `keep_alive`: what the server would like; the request has its say, too.
  HttpReply(HttpConnection& connection, const HttpRequest& request, bool keep_alive,
            HttpClock::duration patience);

  // Before anything is sent.
  void header(std::string_view name, std::string_view value);
  void send(int status, std::string_view type, std::string_view body);

  // Pieces, each of which goes out at once. False: nobody reads any more.
  bool begin(std::string_view type);
  bool write(std::string_view piece);
  void end();

  bool client_gone() const { return broken_ || connection_.client_gone(); }
  bool sent() const { return status_ != 0; }
  int status() const { return status_; }
  // The connection can take another request.
  bool reusable() const { return keep_alive_ && !broken_ && !open_; }

 private:
  void start(int status, std::string_view type);

  HttpConnection& connection_;
  const HttpClock::duration patience_;
  const bool http_1_0_, head_only_;
  bool keep_alive_;
  std::string headers_;
  int status_ = 0;
  bool open_ = false, broken_ = false;
};

}  // namespace hearth
