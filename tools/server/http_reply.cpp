#include "tools/server/http_reply.h"

#include <algorithm>

#include <fmt/format.h>

namespace hearth {

HttpReply::HttpReply(HttpConnection& connection, const HttpRequest& request, bool keep_alive,
                     const HttpWriteLimits& limits)
    : connection_(connection),
      limits_(limits),
      http_1_0_(request.http_1_0),
      head_only_(request.method == "HEAD"),
      keep_alive_(keep_alive && request.keep_alive) {}

void HttpReply::header(std::string_view name, std::string_view value) {
  headers_ += fmt::format("{}: {}\r\n", name, value);
}

void HttpReply::start(int status, std::string_view type) {
  status_ = status;
  if (!type.empty()) header("Content-Type", type);
  header("X-Content-Type-Options", "nosniff");
  header("Connection", keep_alive_ ? "keep-alive" : "close");
  headers_ = fmt::format("HTTP/1.1 {} {}\r\n", status, http_status_text(status)) + headers_;
}

void HttpReply::send(int status, std::string_view type, std::string_view body) {
  start(status, type);
  if (status != 204) header("Content-Length", fmt::format("{}", body.size()));
  headers_ += "\r\n";
  if (!head_only_ && status != 204) headers_ += body;
  broken_ = !connection_.write(headers_, limits_.time);
}

bool HttpReply::begin(std::string_view type) {
  // In HTTP/1.0 the end of a reply of unknown length is the end of the connection.
  if (http_1_0_) keep_alive_ = false;
  header("Cache-Control", "no-cache");
  header("X-Accel-Buffering", "no");  // nginx would collect the pieces
  start(200, type);
  headers_ += http_1_0_ ? "\r\n" : "Transfer-Encoding: chunked\r\n\r\n";
  broken_ = !connection_.write(headers_, limits_.time);
  open_ = true;
  last_read_ = HttpClock::now();
  return !broken_ && !head_only_;
}

bool HttpReply::write(std::string_view piece) {
  if (broken_ || head_only_) return false;
  if (piece.empty()) return flush();
  if (http_1_0_)
    backlog_ += piece;
  else
    backlog_ += fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
  return flush() && wait_for_room();
}

bool HttpReply::flush() {
  if (!send_some()) return false;
  return HttpClock::now() - last_read_ < limits_.time || give_up();
}

// What the socket takes right now.
bool HttpReply::send_some() {
  if (broken_) return false;
  size_t sent = 0;
  while (sent < backlog_.size()) {
    const auto count = connection_.write_some(std::string_view(backlog_).substr(sent));
    broken_ = !count;
    if (broken_) return false;
    if (*count == 0) break;
    sent += *count;
  }
  backlog_.erase(0, sent);
  if (sent > 0 || backlog_.empty()) last_read_ = HttpClock::now();
  return true;
}

// A client that reads may be behind for a moment when much was written at once.
bool HttpReply::wait_for_room() {
  constexpr std::chrono::seconds kFullPatience{2};  // without anything being read
  const HttpClock::time_point last = HttpClock::now() + limits_.time;
  while (backlog_.size() > limits_.backlog_bytes) {
    const HttpClock::time_point now = HttpClock::now();
    if (now >= last || now - last_read_ >= kFullPatience) return give_up();
    connection_.wait_until_writable(std::min(last, now + kFullPatience));
    if (!send_some()) return false;
  }
  return true;
}

bool HttpReply::give_up() {
  did_not_read_ = true;
  broken_ = true;
  backlog_ = {};
  return false;
}

void HttpReply::end(HttpClock::duration patience) {
  if (!broken_ && !head_only_) {
    if (!http_1_0_) backlog_ += "0\r\n\r\n";
    broken_ = !connection_.write(backlog_, patience);
    backlog_ = {};
  }
  open_ = false;
}

}  // namespace hearth
