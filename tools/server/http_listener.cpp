#include "tools/server/http_listener.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/log.h"

namespace hearth {
namespace {

constexpr auto kIdleThreadTime = std::chrono::seconds(10);  // before a thread without work ends
constexpr int kSweepMilliseconds = 1000;
// Bytes that the kernel keeps for a client that does not read, beyond the reply's own backlog.
constexpr int kSendBufferBytes = 64 << 10;

bool watch_socket(int events, int socket, uint32_t what, int operation) {
  epoll_event event = {};
  event.events = what;
  event.data.fd = socket;
  return epoll_ctl(events, operation, socket, &event) == 0;
}

std::string address_text(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST] = "?";
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof(host), nullptr, 0,
              NI_NUMERICHOST);
  return host;
}

int port_of(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

// Returns a socket that listens at `address`, or -1 with errno.
int listen_at(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  // A server that was killed leaves its port half closed for a minute; this one need not wait.
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(socket, address.ai_addr, address.ai_addrlen) == 0 && ::listen(socket, SOMAXCONN) == 0)
    return socket;
  const int failure = errno;
  close(socket);
  errno = failure;
  return -1;
}

}  // namespace

HttpListener::HttpListener(const HttpListenerOptions& options, HttpService service)
    : options_(options), service_(std::move(service)), budget_(options.bodies_bytes) {}

std::string host_and_port(const std::string& host, int port) {
  return host.find(':') != std::string::npos ? fmt::format("[{}]:{}", host, port)
                                             : fmt::format("{}:{}", host, port);
}

HttpListener::~HttpListener() { close(); }

Result<std::unique_ptr<HttpListener>> HttpListener::create(const HttpListenerOptions& options,
                                                           HttpService service) {
  std::unique_ptr<HttpListener> listener(new HttpListener(options, std::move(service)));
  HEARTH_TRY(listener->listen());
  return listener;
}

Status HttpListener::open_socket() {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  const std::string port = fmt::format("{}", options_.port);
  if (const int failed = getaddrinfo(options_.host.c_str(), port.c_str(), &hints, &found))
    return Error{ErrorKind::kInvalid,
                 fmt::format("cannot listen on {}: {}", host_and_port(options_.host, options_.port),
                             gai_strerror(failed))};
  for (const addrinfo* address = found; address != nullptr && listener_ < 0;
       address = address->ai_next)
    listener_ = listen_at(*address);
  const int failure = errno;
  freeaddrinfo(found);
  if (listener_ < 0)
    return Error{ErrorKind::kIo,
                 fmt::format("cannot listen on {}: {}", host_and_port(options_.host, options_.port),
                             std::strerror(failure))};
  port_ = port_of(listener_);
  return {};
}

Status HttpListener::listen() {
  HEARTH_TRY(open_socket());
  events_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (events_ < 0 || wake_ < 0 || !watch_socket(events_, listener_, EPOLLIN, EPOLL_CTL_ADD) ||
      !watch_socket(events_, wake_, EPOLLIN, EPOLL_CTL_ADD))
    return Error{ErrorKind::kIo, fmt::format("cannot wait for clients: {}", std::strerror(errno))};
  watcher_ = std::thread([this] { watch(); });
  return {};
}

void HttpListener::close() {
  keep_alive_ = false;
  closing_ = true;
  if (watcher_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof(one));
    watcher_.join();
  }
  // New clients are refused at once instead of waiting for an answer that never comes.
  if (listener_ >= 0) ::close(std::exchange(listener_, -1));
  {
    std::unique_lock lock(mutex_);
    work_ready_.notify_all();
    worker_gone_.wait(lock, [this] { return workers_ == 0; });
    idle_.clear();
    queue_.clear();
  }
  for (int* socket : {&events_, &wake_})
    if (*socket >= 0) ::close(std::exchange(*socket, -1));
}

void HttpListener::watch() {
  std::vector<epoll_event> ready(256);
  HttpClock::time_point swept = HttpClock::now();
  while (!closing_) {
    const int count =
        epoll_wait(events_, ready.data(), static_cast<int>(ready.size()), kSweepMilliseconds);
    for (int i = 0; i < count; ++i) {
      const int socket = ready[static_cast<size_t>(i)].data.fd;
      try {
        if (socket == listener_)
          accept_all();
        else if (socket != wake_)
          start_serving(socket);
      } catch (const std::bad_alloc&) {  // fails this client, not the others
      }
    }
    const HttpClock::time_point now = HttpClock::now();
    if (now - swept >= std::chrono::milliseconds(kSweepMilliseconds)) {
      close_idle(now - options_.idle_time);
      budget_.return_freed_pages();
      swept = now;
    }
  }
}

void HttpListener::accept_all() {
  for (;;) {
    sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    const int socket = accept4(listener_, reinterpret_cast<sockaddr*>(&address), &size,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
      // Out of file descriptors: an idle client gives up its own; without one, try again later.
      if ((errno == EMFILE || errno == ENFILE) && !close_oldest_idle())
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return;
    }
    const int yes = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof(kSendBufferBytes));
    auto connection =
        std::make_unique<HttpConnection>(socket, address_text(address, size), aborted_);
    bool full = false;
    {
      const std::lock_guard lock(mutex_);
      full = connections_ >= options_.most_connections;
    }
    // Closes the connection that was idle longest, or the new one if all are busy.
    if (full && !close_oldest_idle()) continue;
    {
      const std::lock_guard lock(mutex_);
      ++connections_;
      idle_[socket] = {std::move(connection), HttpClock::now()};
    }
    watch_socket(events_, socket, EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, EPOLL_CTL_ADD);
  }
}

void HttpListener::close_idle(HttpClock::time_point before) {
  const std::lock_guard lock(mutex_);
  connections_ -=
      std::erase_if(idle_, [&](const auto& item) { return item.second.since < before; });
}

bool HttpListener::close_oldest_idle() {
  const std::lock_guard lock(mutex_);
  const auto oldest = std::min_element(
      idle_.begin(), idle_.end(),
      [](const auto& a, const auto& b) { return a.second.since < b.second.since; });
  if (oldest == idle_.end()) return false;
  idle_.erase(oldest);
  --connections_;
  return true;
}

void HttpListener::start_serving(int socket) {
  const std::lock_guard lock(mutex_);
  const auto place = idle_.find(socket);
  if (place == idle_.end()) return;
  queue_.push_back(std::move(place->second.connection));
  idle_.erase(place);
  if (queue_.size() > free_workers_) {
    try {
      std::thread([this] { work(); }).detach();
      ++workers_;
    } catch (const std::system_error&) {
      // No more threads: the connection waits for one of those that run, if any.
      if (workers_ == 0) {
        queue_.pop_back();
        --connections_;
      }
    }
  }
  work_ready_.notify_one();
}

void HttpListener::keep(std::unique_ptr<HttpConnection> connection) {
  const int socket = connection->socket();
  const std::lock_guard lock(mutex_);
  idle_[socket] = {std::move(connection), HttpClock::now()};
  watch_socket(events_, socket, EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, EPOLL_CTL_MOD);
}

void HttpListener::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++free_workers_;
    work_ready_.wait_for(lock, kIdleThreadTime, [this] { return !queue_.empty() || closing_; });
    --free_workers_;
    if (queue_.empty()) break;
    std::unique_ptr<HttpConnection> connection = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    serve(std::move(connection));
    lock.lock();
  }
  --workers_;
  worker_gone_.notify_all();
}

void HttpListener::serve(std::unique_ptr<HttpConnection> connection) {
  try {
    while (serve_one(*connection)) {
      if (connection->has_more()) continue;
      return keep(std::move(connection));
    }
  } catch (const std::exception&) {  // not even enough memory for an error reply
  }
  connection.reset();
  const std::lock_guard lock(mutex_);
  --connections_;
}

bool HttpListener::serve_one(HttpConnection& connection) {
  HttpClock::time_point began = HttpClock::now();
  // One line per request, never with what was in it.
  const auto log = [&](std::string_view method, std::string_view path, const HttpReply& reply) {
    const std::chrono::duration<double, std::milli> took = HttpClock::now() - began;
    log_line(fmt::format("{} {} {} {} {:.1f} ms{}", connection.peer(), method, path.substr(0, 100),
                         reply.status(), took.count(),
                         reply.client_did_not_read() ? ", ended: the client did not read" : ""));
  };
  bool reusable = false;  // the connection, after a refusal
  const auto admit = [&](const HttpRequest& head, bool has_body) {
    began = HttpClock::now();
    HttpReply reply(connection, head, keep_alive_ && !has_body, options_.write);
    if (service_.admit(head, reply)) return true;
    reusable = reply.reusable();
    log(head.method, head.path, reply);
    return false;
  };
  auto read = this->read(connection, admit);
  if (std::holds_alternative<HttpConnection::Closed>(read)) return false;
  if (const HttpError* error = std::get_if<HttpError>(&read)) {
    HttpReply reply(connection, HttpRequest{}, /*keep_alive=*/false, options_.write);
    service_.refuse(*error, reply);
    log("-", "-", reply);
    connection.linger();
    return false;
  }
  if (std::holds_alternative<HttpConnection::Refused>(read)) {
    if (!reusable) connection.linger();
    return reusable;
  }
  HttpRequest& request = std::get<HttpRequest>(read);
  HttpReply reply(connection, request, keep_alive_, options_.write);
  call_handler(request, reply);
  log(request.method, request.path, reply);
  return reply.reusable();
}

HttpListener::Read HttpListener::read(HttpConnection& connection,
                                      const HttpConnection::Admit& admit) {
  try {
    return connection.read({.limits = options_.limits,
                            .time = options_.read_time,
                            .budget = budget_,
                            .closing = closing_},
                           admit);
  } catch (const std::bad_alloc&) {
    return HttpError{503, "there is no memory for the request"};
  }
}

void HttpListener::call_handler(HttpRequest& request, HttpReply& reply) const {
  // The standard library throws when memory runs out; that fails this request, not the others.
  try {
    service_.handle(request, reply);
  } catch (const std::exception& exception) {
    if (!reply.sent()) service_.refuse({500, exception.what()}, reply);
  } catch (...) {
    if (!reply.sent()) service_.refuse({500, "the request failed"}, reply);
  }
}

}  // namespace hearth
