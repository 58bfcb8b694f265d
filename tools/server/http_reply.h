// The reply to one request, sent as a whole or as a stream. Used by one thread at a time.
//
// A stream never blocks its writer for long: bytes that the client has not read yet wait in a
// backlog. A client whose backlog is full, or stays unread for too long, counts as gone.
#pragma once

#include <string>
#include <string_view>

#include "tools/server/http_connection.h"

namespace hearth {

struct HttpWriteLimits {
  HttpClock::duration time = std::chrono::seconds(30);  // without the client reading anything
  size_t backlog_bytes = 1 << 20;                       // of a stream, unread
};

class HttpReply {
 public:
  // `keep_alive`: whether the server would keep the connection; the request may ask for its end.
  HttpReply(HttpConnection& connection, const HttpRequest& request, bool keep_alive,
            const HttpWriteLimits& limits);

  // Adds a header. REQUIRES: nothing has been sent.
  void header(std::string_view name, std::string_view value);
  // Sends the whole reply.
  void send(int status, std::string_view type, std::string_view body);

  // A stream: begins with status 200, grows by pieces that are sent at once, ends. False: the
  // client is gone, or asked for the headers only.
  bool begin(std::string_view type);
  bool write(std::string_view piece);
  void end() { end(limits_.time); }
  void end(HttpClock::duration patience);  // for the client to read the backlog
  // Sends more of the backlog. To be called now and then while there is nothing to write. False:
  // the client is gone.
  bool flush();
  size_t backlog() const { return backlog_.size(); }

  bool client_gone() const { return broken_ || connection_.client_gone(); }
  bool client_did_not_read() const { return did_not_read_; }
  bool sent() const { return status_ != 0; }
  int status() const { return status_; }
  // The connection can take another request.
  bool reusable() const { return keep_alive_ && !broken_ && !open_; }

 private:
  void start(int status, std::string_view type);
  bool send_some();
  bool wait_for_room();
  bool give_up();

  HttpConnection& connection_;
  const HttpWriteLimits limits_;
  const bool http_1_0_, head_only_;
  bool keep_alive_;
  std::string headers_;
  int status_ = 0;
  bool open_ = false, broken_ = false, did_not_read_ = false;
  std::string backlog_;
  HttpClock::time_point last_read_;  // when the client last made room in the socket
};

}  // namespace hearth
