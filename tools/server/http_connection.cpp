#include "tools/server/http_connection.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hearth {
namespace {

constexpr std::chrono::milliseconds kWaitSlice{100};  // how often a wait looks whether to continue

// Waits for `events` until `deadline`.
bool wait_for_socket(int socket, short events, HttpClock::time_point deadline) {
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

bool would_block(int failure) { return failure == EAGAIN || failure == EWOULDBLOCK; }

}  // namespace

HttpConnection::HttpConnection(int socket, std::string peer, const std::atomic<bool>& aborted)
    : socket_(socket), peer_(std::move(peer)), aborted_(aborted) {}

HttpConnection::~HttpConnection() { close(socket_); }

std::variant<HttpRequest, HttpError, HttpConnection::Refused, HttpConnection::Closed>
HttpConnection::read(const HttpReadOptions& options, const Admit& admit) {
  const HttpClock::time_point deadline = HttpClock::now() + options.time;
  HttpParser parser(options.limits);
  MemoryLease memory(options.budget);
  bool admitted = false, told_to_continue = false;
  char buffer[16384];
  for (;;) {
    const HttpParser::State state = parser.feed(input_);
    if (state == HttpParser::State::kFailed) return parser.error();
    if (parser.head_read() && !std::exchange(admitted, true) &&
        !admit(parser.head(), parser.has_body()))
      return Refused{};
    if (!memory.grow_to(parser.body_memory_bytes()))
      return HttpError{503, "too many large requests are being read; try again later"};
    if (state == HttpParser::State::kDone) {
      HttpRequest request = parser.take();
      request.memory = std::move(memory);
      return request;
    }
    if (parser.expects_continue() && !std::exchange(told_to_continue, true) &&
        !write("HTTP/1.1 100 Continue\r\n\r\n", options.time))
      return Closed{};
    const ssize_t count = recv(socket_, buffer, sizeof(buffer), 0);
    if (count > 0) {
      input_.append(buffer, static_cast<size_t>(count));
    } else if (count < 0 && would_block(errno)) {
      if (options.closing || aborted_) return Closed{};
      wait_for_socket(socket_, POLLIN, std::min(deadline, HttpClock::now() + kWaitSlice));
    } else if (count == 0 || errno != EINTR) {
      return Closed{};
    }
    if (HttpClock::now() >= deadline) return HttpError{408, "the request did not come in time"};
  }
}

bool HttpConnection::write(std::string_view bytes, HttpClock::duration patience) {
  constexpr size_t kSlowestBytesPerSecond = 16384;
  const HttpClock::time_point last =
      HttpClock::now() + patience + std::chrono::seconds(bytes.size() / kSlowestBytesPerSecond);
  while (!bytes.empty()) {
    const std::optional<size_t> count = write_some(bytes);
    if (!count) return false;
    bytes.remove_prefix(*count);
    if (*count == 0 && !wait_until_writable(std::min(last, HttpClock::now() + patience)))
      return false;
  }
  return true;
}

std::optional<size_t> HttpConnection::write_some(std::string_view bytes) {
  for (;;) {
    if (aborted_) return std::nullopt;
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) return static_cast<size_t>(count);
    if (would_block(errno)) return 0;
    if (errno != EINTR) return std::nullopt;
  }
}

bool HttpConnection::wait_until_writable(HttpClock::time_point deadline) const {
  while (!aborted_ && HttpClock::now() < deadline)
    if (wait_for_socket(socket_, POLLOUT, std::min(deadline, HttpClock::now() + kWaitSlice)))
      return true;
  return false;
}

bool HttpConnection::client_gone() const {
  if (aborted_) return true;
  pollfd entry = {.fd = socket_, .events = POLLRDHUP, .revents = 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void HttpConnection::linger() {
  shutdown(socket_, SHUT_WR);
  const HttpClock::time_point deadline = HttpClock::now() + std::chrono::seconds(1);
  constexpr size_t kMostBytes = 64 << 20;
  char buffer[16384];
  for (size_t skipped = 0; skipped < kMostBytes && wait_for_socket(socket_, POLLIN, deadline);) {
    const ssize_t count = recv(socket_, buffer, sizeof(buffer), 0);
    if (count <= 0) return;
    skipped += static_cast<size_t>(count);
  }
}

}  // namespace hearth
