#include "ui/feeds/remote_feed.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hearth {
namespace {

// Bounds memory while the window is not polling.
constexpr size_t kMaxQueuedSteps = 8192;

Error io(std::string message) { return {ErrorKind::kIo, std::move(message)}; }

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// Detects a peer that vanished without closing the connection within about half a minute.
void keep_alive(int socket) {
  const int on = 1, idle = 15, interval = 5, count = 3;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
#ifdef TCP_KEEPIDLE
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
#endif
}

}  // namespace

Result<std::unique_ptr<RemoteFeed>> RemoteFeed::create(const std::string& url,
                                                       const RemoteFeedOptions& options) {
  HEARTH_ASSIGN(HttpAddress address, parse_http_address(url));
  for (const char c : options.api_key)
    if (static_cast<unsigned char>(c) < ' ')
      return Error{ErrorKind::kInvalid,
                   "the API key contains a line break or another control character"};
  std::unique_ptr<RemoteFeed> feed(new RemoteFeed(std::move(address), options));
  if (pipe2(feed->wake_, O_CLOEXEC | O_NONBLOCK) != 0)
    return io(fmt::format("cannot create a pipe: {}", std::strerror(errno)));
  feed->thread_ = std::thread([raw = feed.get()] { raw->loop(); });
  return feed;
}

RemoteFeed::RemoteFeed(HttpAddress address, const RemoteFeedOptions& options)
    : address_(std::move(address)), options_(options) {}

RemoteFeed::~RemoteFeed() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (wake_[1] >= 0) {
    [[maybe_unused]] const ssize_t written = write(wake_[1], "x", 1);
  }
  if (thread_.joinable()) thread_.join();
  for (const int end : wake_)
    if (end >= 0) close(end);
}

bool RemoteFeed::stopping() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

void RemoteFeed::loop() {
  double pause = options_.first_retry_s;
  while (!stopping()) {
    const Status status = stream_events();
    std::unique_lock lock(mutex_);
    connected_ = false;
    if (std::exchange(replied_, false)) pause = options_.first_retry_s;
    failure_ = fmt::format(
        "{}: {}; retrying in {:.2g} s", address_.text,
        status.ok() ? "the server closed the connection" : status.error().message, pause);
    stopped_.wait_for(lock, std::chrono::duration<double>(pause), [&] { return stop_; });
    pause = std::min(pause * 2, options_.max_retry_s);
  }
}

// Returns whether the socket became ready in time, and false if the feed is stopping. Negative
// seconds mean no limit.
bool RemoteFeed::wait_for(int socket, short events, double seconds) const {
  pollfd entries[] = {{.fd = socket, .events = events, .revents = 0},
                      {.fd = wake_[0], .events = POLLIN, .revents = 0}};
  const int limit = seconds < 0 ? -1 : static_cast<int>(seconds * 1000);
  while (true) {
    const int count = ::poll(entries, 2, limit);
    if (count < 0 && errno == EINTR) continue;
    return count > 0 && entries[1].revents == 0;
  }
}

// Connects and reads until an error occurs or the server closes the connection.
Status RemoteFeed::stream_events() {
  const addrinfo hints{.ai_flags = 0,
                       .ai_family = AF_UNSPEC,
                       .ai_socktype = SOCK_STREAM,
                       .ai_protocol = 0,
                       .ai_addrlen = 0,
                       .ai_addr = nullptr,
                       .ai_canonname = nullptr,
                       .ai_next = nullptr};
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(address_.host.c_str(), address_.port.c_str(), &hints, &found);
      error != 0)
    return io(fmt::format("cannot resolve the host name ({})", gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);

  std::string problem = "no answer";
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const Socket socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                 one->ai_protocol));
    if (socket.get() < 0) continue;
    if (connect(socket.get(), one->ai_addr, one->ai_addrlen) != 0 && errno != EINPROGRESS) {
      problem = std::strerror(errno);
      continue;
    }
    if (!wait_for(socket.get(), POLLOUT, options_.connect_timeout_s)) {
      if (stopping()) return {};
      problem = "no answer";
      continue;
    }
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      problem = std::strerror(error);
      continue;
    }
    keep_alive(socket.get());
    std::string request = fmt::format(
        "GET /events HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n", address_.text);
    if (!options_.api_key.empty())
      request += fmt::format("Authorization: Bearer {}\r\n", options_.api_key);
    request += "\r\n";
    // A request this small always fits the send buffer of a new connection.
    if (send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
      return io("cannot send the request");

    EventReader reader;
    std::vector<ServerEvent> events;
    while (!reader.ended()) {
      // The head arrives at once. After it, an idle engine sends nothing, so there is no limit.
      if (!wait_for(socket.get(), POLLIN, reader.has_head() ? -1 : options_.connect_timeout_s)) {
        if (stopping()) return {};
        return io("no answer");
      }
      char bytes[32768];
      const ssize_t count = recv(socket.get(), bytes, sizeof(bytes), 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (count < 0) return io(std::strerror(errno));
      if (count == 0) break;
      HEARTH_TRY(reader.push({bytes, static_cast<size_t>(count)}, events));
      if (reader.has_head()) {
        const std::lock_guard lock(mutex_);
        replied_ = connected_ = true;
        failure_.clear();
      }
      for (const ServerEvent& event : events) handle_event(event);
      events.clear();
    }
    return {};
  }
  return io(problem);
}

void RemoteFeed::handle_event(const ServerEvent& event) {
  if (event.name == kHelloEvent) {
    Result<EngineHello> hello = parse_hello_event(event.data);
    const std::lock_guard lock(mutex_);
    if (!hello.ok()) {
      failure_ = fmt::format("{}: {}", address_.text, hello.error().message);
      return;
    }
    if (hello_ && (hello->instance != hello_->instance || hello->now < last_seconds_)) {
      ++restarts_;
      last_step_ = 0;
      steps_.clear();
      missed_ = 0;
      totals_ = {};
      preempted_.clear();
      counts_ = {};
    }
    last_seconds_ = hello->now;
    hello_ = std::move(*hello);
    hello_received_ = EngineClock::now();
    return;
  }
  if (event.name == kCountsEvent) {
    const std::lock_guard lock(mutex_);
    const Result<SchedulerCounts> counts = parse_counts_event(event.data, counts_);
    if (counts.ok())
      counts_ = *counts;
    else
      failure_ = fmt::format("{}: {}", address_.text, counts.error().message);
    return;
  }
  if (!event.name.empty()) return;
  Result<StepRecord> record = parse_step_event(event.data);
  const std::lock_guard lock(mutex_);
  if (!record.ok()) {
    failure_ = fmt::format("{}: {}", address_.text, record.error().message);
    return;
  }
  add_step(std::move(*record));
}

// REQUIRES: mutex_ is held.
void RemoteFeed::add_step(StepRecord record) {
  if (record.step <= last_step_) return;  // already received
  if (last_step_ != 0) missed_ += record.step - last_step_ - 1;
  last_step_ = record.step;
  last_seconds_ = std::max(last_seconds_, record.end_seconds);
  counts_ = record.counts;
  totals_.requests_submitted += record.arrived.size();
  totals_.requests_finished += record.finished.size();
  totals_.generated_tokens += record.sampled_tokens;
  totals_.padding_tokens += record.padding_tokens;
  totals_.preemptions_recompute += record.preempted_recompute.size();
  totals_.preemptions_swap += record.preempted_swap.size();
  for (const StepMember& member : record.members)
    if (member.phase == StepPhase::kPrompt) totals_.prompt_tokens += member.tokens;
  // A preempted request that finds its own old blocks is not a prefix-cache hit.
  for (const BatchPlan::PrefixHit& hit : record.prefix_hits)
    if (!preempted_.contains(hit.request)) totals_.prefix_hit_tokens += hit.tokens;
  preempted_.insert(record.preempted_recompute.begin(), record.preempted_recompute.end());
  for (const RequestId id : record.finished) preempted_.erase(id);
  if (steps_.size() == kMaxQueuedSteps) {
    steps_.erase(steps_.begin(), steps_.begin() + kMaxQueuedSteps / 2);
    missed_ += kMaxQueuedSteps / 2;
  }
  steps_.push_back(std::move(record));
}

void RemoteFeed::poll(EngineView& view) {
  const std::lock_guard lock(mutex_);
  view.new_steps.clear();
  std::swap(view.new_steps, steps_);
  view.missed_steps = std::exchange(missed_, 0);
  view.connected = connected_;
  view.failure = failure_;
  view.generation = (view.generation & 0xffffffff) | restarts_ << 32;
  view.state = EngineState::kRunning;
  view.has_snapshot = false;
  view.counts = counts_;
  view.totals = totals_;
  view.now = last_seconds_;
  if (hello_) {
    const double since =
        std::chrono::duration<double>(EngineClock::now() - hello_received_).count();
    if (connected_) view.now = std::max(last_seconds_, hello_->now + since);
    view.model = hello_->model;
    view.device = hello_->device;
    view.limits = hello_->limits;
    view.policy = hello_->policy;
    view.source = fmt::format("{} on {}, at {}", hello_->model, hello_->device, address_.text);
  } else {
    // Without a hello event (an older server), derive what the steps reveal.
    view.limits.pool_blocks = counts_.blocks_used + counts_.blocks_cached + counts_.blocks_free;
    view.source = address_.text;
  }
}

}  // namespace hearth
