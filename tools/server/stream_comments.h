// Keeps a stream of events alive while it has nothing to say. Proxies and clients close connections
// that are silent for long, and a request may wait in the queue for minutes; a comment means
// nothing to a client. Used by one thread at a time.
#pragma once

#include <string_view>

#include "tools/server/http_reply.h"

namespace hearth {

class StreamComments {
 public:
  // `type` is the stream's content type; only event streams can have comments. `interval` is the
  // longest silence. REQUIRES: `reply` and `type` outlive it.
  StreamComments(HttpReply& reply, std::string_view type, HttpClock::duration interval)
      : reply_(reply),
        type_(type),
        interval_(interval),
        allowed_(type == "text/event-stream"),
        last_(HttpClock::now()) {}

  // Sends the headers unless a comment came before. False: the client is gone.
  bool begin() {
    if (begun_) return true;
    begun_ = true;
    last_ = HttpClock::now();
    return reply_.begin(type_);
  }
  // The status has been sent, so that errors can only be events.
  bool begun() const { return begun_; }
  bool write(std::string_view text) {
    last_ = HttpClock::now();
    return reply_.write(text);
  }
  // To be called every few milliseconds while there is nothing to write: sends a comment if it is
  // time for one. False: the client is gone.
  bool keep_alive() {
    if (!allowed_ || HttpClock::now() - last_ < interval_) return true;
    return begin() && write(": waiting\n\n");
  }

 private:
  HttpReply& reply_;
  const std::string_view type_;
  const HttpClock::duration interval_;
  const bool allowed_;
  bool begun_ = false;
  HttpClock::time_point last_;  // when something was sent
};

}  // namespace hearth
