#include "tools/server/http_connection.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hearth {
namespace {

// Waits for `events` until `deadline`.
bool wait_for(int socket, short events, HttpClock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - HttpClock::now()).count();
    if (left <= 0) return false;
    pollfd entry = {.fd = socket, .events = events, .revents = 0};
    const int ready = poll(&entry, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

}  // namespace

HttpConnection::HttpConnection(int socket, std::string peer)
    : socket_(socket), peer_(std::move(peer)) {}

HttpConnection::~HttpConnection() { close(socket_); }

std::variant<HttpRequest, HttpError, HttpConnection::Closed> HttpConnection::read(
    const HttpLimits& limits, HttpClock::duration time, const std::atomic<bool>& closing) {
  constexpr std::chrono::milliseconds kGlance{100};  // how often it looks whether to go on
  const HttpClock::time_point deadline = HttpClock::now() + time;
  HttpParser parser(limits);
  bool told_to_continue = false;
  char buffer[16384];
  for (;;) {
    const HttpParser::State state = parser.feed(input_);
    if (state == HttpParser::State::kDone) return parser.take();
    if (state == HttpParser::State::kFailed) return parser.error();
    if (parser.expects_continue() && !std::exchange(told_to_continue, true) &&
        !write("HTTP/1.1 100 Continue\r\n\r\n", time))
      return Closed{};
    const ssize_t count = recv(socket_, buffer, sizeof(buffer), 0);
    if (count > 0) {
      input_.append(buffer, static_cast<size_t>(count));
    } else if (count == 0) {
      return Closed{};
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (closing) return Closed{};
      wait_for(socket_, POLLIN, std::min(deadline, HttpClock::now() + kGlance));
    } else if (errno != EINTR) {
      return Closed{};
    }
    if (HttpClock::now() >= deadline) return HttpError{408, "the request did not come in time"};
  }
}

bool HttpConnection::write(std::string_view bytes, HttpClock::duration patience) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0)
      bytes.remove_prefix(static_cast<size_t>(count));
    else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(socket_, POLLOUT, HttpClock::now() + patience)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool HttpConnection::client_gone() const {
  pollfd entry = {.fd = socket_, .events = POLLRDHUP, .revents = 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void HttpConnection::linger() {
  shutdown(socket_, SHUT_WR);
  const HttpClock::time_point deadline = HttpClock::now() + std::chrono::seconds(1);
  constexpr size_t kMostBytes = 64 << 20;
  char buffer[16384];
  for (size_t read_over = 0; read_over < kMostBytes && wait_for(socket_, POLLIN, deadline);) {
    const ssize_t count = recv(socket_, buffer, sizeof(buffer), 0);
    if (count <= 0) return;
    read_over += static_cast<size_t>(count);
  }
}

HttpReply::HttpReply(HttpConnection& connection, const HttpRequest& request, bool keep_alive,
                     HttpClock::duration patience)
    : connection_(connection),
      patience_(patience),
      http_1_0_(request.http_1_0),
      head_only_(request.method == "HEAD"),
      keep_alive_(keep_alive && request.keep_alive) {}

void HttpReply::header(std::string_view name, std::string_view value) {
  headers_ += fmt::format("{}: {}\r\n", name, value);
}

void HttpReply::start(int status, std::string_view type) {
  status_ = status;
  if (!type.empty()) header("Content-Type", type);
  header("Connection", keep_alive_ ? "keep-alive" : "close");
  headers_ = fmt::format("HTTP/1.1 {} {}\r\n", status, http_status_text(status)) + headers_;
}

void HttpReply::send(int status, std::string_view type, std::string_view body) {
  start(status, type);
  if (status != 204) header("Content-Length", fmt::format("{}", body.size()));
  headers_ += "\r\n";
  if (!head_only_ && status != 204) headers_ += body;
  broken_ = !connection_.write(headers_, patience_);
}

bool HttpReply::begin(std::string_view type) {
  // Before HTTP/1.1 the end of a reply of unknown length is the end of the connection.
  if (http_1_0_) keep_alive_ = false;
  header("Cache-Control", "no-cache");
  start(200, type);
  headers_ += http_1_0_ ? "\r\n" : "Transfer-Encoding: chunked\r\n\r\n";
  broken_ = !connection_.write(headers_, patience_);
  open_ = true;
  return !broken_ && !head_only_;
}

bool HttpReply::write(std::string_view piece) {
  if (piece.empty() || broken_ || head_only_) return !broken_ && !head_only_;
  broken_ = !connection_.write(
      http_1_0_ ? std::string(piece) : fmt::format("{:x}\r\n{}\r\n", piece.size(), piece),
      patience_);
  return !broken_;
}

void HttpReply::end() {
  if (!broken_ && !http_1_0_ && !head_only_) broken_ = !connection_.write("0\r\n\r\n", patience_);
  open_ = false;
}

}  // namespace hearth
