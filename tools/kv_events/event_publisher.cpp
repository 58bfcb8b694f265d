#include "tools/kv_events/event_publisher.h"

#include <utility>

#ifdef HEARTH_HAS_ZMQ
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <zmq.h>

#include "tools/kv_events/event_history.h"
#endif

namespace hearth {

#ifdef HEARTH_HAS_ZMQ
namespace {

constexpr size_t kMostEvents = 4096;  // of a batch
// How long events are gathered before they are sent: about one batch per step.
constexpr auto kGatherTime = std::chrono::milliseconds(1);

struct CloseSocket {
  void operator()(void* socket) const { zmq_close(socket); }
};
using Socket = std::unique_ptr<void, CloseSocket>;

struct EndContext {
  void operator()(void* context) const { zmq_ctx_term(context); }
};
using Context = std::unique_ptr<void, EndContext>;

using Number = std::array<uint8_t, 8>;

Number to_bytes(uint64_t value) {
  Number bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(value >> (56 - 8 * i));
  return bytes;
}

uint64_t from_bytes(const std::vector<uint8_t>& bytes) {
  uint64_t value = 0;
  for (const uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

// Never waits: what does not fit into the peer's queue is dropped.
template <class Bytes>
bool send_frame(void* socket, const Bytes& bytes, bool more) {
  return zmq_send(socket, bytes.data(), bytes.size(), ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0;
}

// A whole message, if there is one.
std::vector<std::vector<uint8_t>> receive(void* socket) {
  std::vector<std::vector<uint8_t>> frames;
  int more = 1;
  while (more != 0) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    if (zmq_msg_recv(&message, socket, ZMQ_DONTWAIT) < 0) {
      zmq_msg_close(&message);
      return {};
    }
    const auto* const data = static_cast<const uint8_t*>(zmq_msg_data(&message));
    frames.emplace_back(data, data + zmq_msg_size(&message));
    more = zmq_msg_more(&message);
    zmq_msg_close(&message);
  }
  return frames;
}

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

class EventPublisher::Implementation {
 public:
  explicit Implementation(const EventPublisherOptions& options)
      : options_(options),
        log_(options.log_events),
        history_(options.kept_batches, options.kept_bytes),
        context_(zmq_ctx_new()) {}

  ~Implementation() {
    ending_ = true;
    log_.wake();
    if (thread_.joinable()) thread_.join();
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  Status open() {
    if (log_.descriptor() < 0)
      return Error{ErrorKind::kIo, "KV events: no file descriptor is left"};
    std::string endpoint = options_.endpoint;
    const bool told_to_bind = endpoint.starts_with('@');
    if (told_to_bind) endpoint.erase(0, 1);
    const bool binds = told_to_bind || endpoint.find('*') != std::string::npos ||
                       endpoint.find("::") != std::string::npos || endpoint.starts_with("ipc://");
    HEARTH_ASSIGN(events_, open_socket(ZMQ_PUB, endpoint, binds));
    endpoint_ = binds ? bound_to(events_.get()) : endpoint;
    if (options_.replay_endpoint.empty()) return {};
    endpoint = options_.replay_endpoint.substr(options_.replay_endpoint.starts_with('@') ? 1 : 0);
    HEARTH_ASSIGN(replay_, open_socket(ZMQ_ROUTER, endpoint, true));
    replay_endpoint_ = bound_to(replay_.get());
    return {};
  }

  void start(std::string topic) {
    topic_ = std::move(topic);
    thread_ = std::thread([this] { run(); });
  }

  BlockLog& log() { return log_; }
  const std::string& endpoint() const { return endpoint_; }
  const std::string& replay_endpoint() const { return replay_endpoint_; }

 private:
  Result<Socket> open_socket(int type, const std::string& endpoint, bool binds) const {
    Socket socket(zmq_socket(context_.get(), type));
    // Queues as long as the history, so that a whole replay fits. The end of the program waits a
    // little for messages that are on their way.
    const int most = static_cast<int>(options_.kept_batches) + 1, linger_ms = 200;
    zmq_setsockopt(socket.get(), ZMQ_SNDHWM, &most, sizeof(most));
    zmq_setsockopt(socket.get(), ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
    const int ipv6 = 1;
    if (endpoint.find('[') != std::string::npos || endpoint.find("::") != std::string::npos)
      zmq_setsockopt(socket.get(), ZMQ_IPV6, &ipv6, sizeof(ipv6));
    const int status = binds ? zmq_bind(socket.get(), endpoint.c_str())
                             : zmq_connect(socket.get(), endpoint.c_str());
    if (status != 0)
      return Error{ErrorKind::kIo,
                   fmt::format("KV events: cannot {} {}: {}", binds ? "bind" : "connect to",
                               endpoint, zmq_strerror(zmq_errno()))};
    return socket;
  }

  static std::string bound_to(void* socket) {
    char text[256] = {};
    size_t size = sizeof(text);
    return zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, text, &size) == 0 ? text : "";
  }

  void run() {
    zmq_pollitem_t items[] = {{nullptr, log_.descriptor(), ZMQ_POLLIN, 0},
                              {replay_.get(), 0, ZMQ_POLLIN, 0}};
    while (!ending_) {
      if (zmq_poll(items, replay_ ? 2 : 1, -1) < 0) continue;
      if ((items[0].revents & ZMQ_POLLIN) != 0) {
        std::this_thread::sleep_for(kGatherTime);
        publish();
      }
      if (replay_ && (items[1].revents & ZMQ_POLLIN) != 0) answer();
    }
    publish();
  }

  void publish() {
    for (;;) {
      taken_.clear();
      log_.take(kMostEvents, taken_);
      if (taken_.empty()) return;
      std::vector<uint8_t> bytes = encode_batch(taken_, options_.encoding, unix_time());
      const uint64_t sequence = next_++;
      // A subscriber that misses it can ask for it.
      [[maybe_unused]] const bool sent = send_frame(events_.get(), topic_, true) &&
                                         send_frame(events_.get(), to_bytes(sequence), true) &&
                                         send_frame(events_.get(), bytes, false);
      if (replay_) history_.add(sequence, std::move(bytes));
    }
  }

  void answer() {
    const std::vector<std::vector<uint8_t>> frames = receive(replay_.get());
    if (frames.size() != 3 || !frames[1].empty() || frames[2].size() != sizeof(uint64_t)) return;
    const auto send = [&](uint64_t sequence, const std::vector<uint8_t>& bytes) {
      return send_frame(replay_.get(), frames[0], true) &&
             send_frame(replay_.get(), frames[1], true) &&
             send_frame(replay_.get(), to_bytes(sequence), true) &&
             send_frame(replay_.get(), bytes, false);
    };
    const uint64_t from = from_bytes(frames[2]);
    for (const EventHistory::Batch& batch : history_.batches())
      if (batch.sequence >= from && !send(batch.sequence, batch.bytes)) return;
    send(~uint64_t{0}, {});
  }

  const EventPublisherOptions options_;
  BlockLog log_;
  EventHistory history_;
  const Context context_;
  Socket events_, replay_;  // before the context ends
  std::string endpoint_, replay_endpoint_, topic_;
  std::atomic<bool> ending_{false};
  std::vector<BlockEvent> taken_;
  uint64_t next_ = 0;
  std::thread thread_;
};

Result<std::unique_ptr<EventPublisher>> EventPublisher::create(
    const EventPublisherOptions& options) {
  auto implementation = std::make_unique<Implementation>(options);
  HEARTH_TRY(implementation->open());
  return std::unique_ptr<EventPublisher>(new EventPublisher(std::move(implementation)));
}

#else  // HEARTH_HAS_ZMQ

class EventPublisher::Implementation {
 public:
  BlockLog& log() { return log_; }
  void start(const std::string&) {}
  const std::string& endpoint() const { return none_; }
  const std::string& replay_endpoint() const { return none_; }

 private:
  BlockLog log_{1};
  std::string none_;
};

Result<std::unique_ptr<EventPublisher>> EventPublisher::create(const EventPublisherOptions&) {
  return Error{ErrorKind::kUnsupported,
               "this build has no ZeroMQ, so it cannot publish KV events; install libzmq3-dev and "
               "build again"};
}

#endif  // HEARTH_HAS_ZMQ

EventPublisher::EventPublisher(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
EventPublisher::~EventPublisher() = default;

BlockLog& EventPublisher::log() { return implementation_->log(); }
void EventPublisher::start(std::string topic) { implementation_->start(std::move(topic)); }
const std::string& EventPublisher::endpoint() const { return implementation_->endpoint(); }
const std::string& EventPublisher::replay_endpoint() const {
  return implementation_->replay_endpoint();
}

}  // namespace hearth
