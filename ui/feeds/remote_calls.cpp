#include "ui/feeds/remote_calls.h"

#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "tools/http/event_parser.h"
#include "ui/feeds/remote_feed.h"

namespace hearth {
namespace {

constexpr double kConnectSeconds = 5;
constexpr size_t kMaxErrorBytes = size_t{64} << 10;  // of a reply that is no stream

// What the server says is wrong, in the shape of OpenAI's API.
std::string refusal_text(int status, const std::string& body) {
  if (status == 401) return "the server requires an API key: pass it with --api-key";
  const auto object = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (object.is_object() && object.contains("error") && object["error"].is_object()) {
    const auto message = object["error"].find("message");
    if (message != object["error"].end() && message->is_string())
      return message->get<std::string>();
  }
  return fmt::format("the server answered with HTTP status {}", status);
}

}  // namespace

// Of the thread, until the call has ended.
class RemoteCall::Transfer final : public TransferHandler {
 public:
  explicit Transfer(std::shared_ptr<RemoteCall> call) : call_(std::move(call)) {}

  bool on_head(const TransferHead& head) override {
    status_ = head.status;
    streams_ = status_ == 200 && head.content_type.starts_with("text/event-stream");
    return true;
  }
  bool on_body(std::string_view bytes) override {
    if (!streams_) {
      if (status_ != 200 && body_.size() + bytes.size() <= kMaxErrorBytes) body_ += bytes;
      return true;
    }
    std::vector<ServerEvent> events;
    const Status status = parser_.push(bytes, events);
    const std::lock_guard lock(call_->mutex_);
    for (ServerEvent& event : events) call_->events_.push_back(std::move(event.data));
    if (!status.ok()) call_->failure_ = status.error().message;
    return status.ok();
  }
  void on_end(const TransferEnd& end) override {
    const std::lock_guard lock(call_->mutex_);
    call_->ended_ = true;
    if (!call_->failure_.empty()) return;
    if (!end.ok())
      call_->failure_ = end.message;
    else if (status_ != 200)
      call_->failure_ = refusal_text(status_, body_);
  }

  bool ended() const { return call_->ended(); }
  // The caller wants no more of it.
  bool cancelled() const {
    const std::lock_guard lock(call_->mutex_);
    return call_->cancelled_;
  }
  void mark_cancelled() {
    const std::lock_guard lock(call_->mutex_);
    call_->ended_ = true;
  }
  TransferRequest request(const ServerUrl& server, const std::string& key) const {
    return {.server = server,
            .path = call_->path_,
            .body = call_->body_,
            .key = key,
            .headers = {},
            .connect_seconds = kConnectSeconds};
  }

 private:
  const std::shared_ptr<RemoteCall> call_;
  int status_ = 0;
  bool streams_ = false;
  std::string body_;
  EventParser parser_;
};

std::vector<std::string> RemoteCall::take_events() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

bool RemoteCall::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

std::string RemoteCall::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void RemoteCall::cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  if (const auto transfers = waker_.lock()) transfers->wake();
}

Result<std::unique_ptr<RemoteCalls>> RemoteCalls::create(const std::string& url,
                                                         const std::string& api_key) {
  HEARTH_ASSIGN(ServerUrl server, watched_server(url, api_key));
  HEARTH_ASSIGN(std::unique_ptr<HttpTransfers> transfers, HttpTransfers::create());
  std::unique_ptr<RemoteCalls> calls(
      new RemoteCalls(std::move(server), api_key, std::move(transfers)));
  calls->thread_ = std::thread([raw = calls.get()] { raw->loop(); });
  return calls;
}

RemoteCalls::RemoteCalls(ServerUrl server, std::string api_key,
                         std::unique_ptr<HttpTransfers> transfers)
    : server_(std::move(server)), api_key_(std::move(api_key)), transfers_(std::move(transfers)) {}

RemoteCalls::~RemoteCalls() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  transfers_->wake();
  thread_.join();
}

std::shared_ptr<RemoteCall> RemoteCalls::post(std::string path, std::string body) {
  auto call = std::make_shared<RemoteCall>(std::move(path), std::move(body), transfers_);
  {
    const std::lock_guard lock(mutex_);
    queued_.push_back(call);
  }
  transfers_->wake();
  return call;
}

void RemoteCalls::loop() {
  constexpr double kLongestWait = 1;  // seconds; wake() ends it
  std::vector<std::unique_ptr<RemoteCall::Transfer>> active;
  for (;;) {
    std::vector<std::shared_ptr<RemoteCall>> added;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) break;
      added.swap(queued_);
    }
    for (std::shared_ptr<RemoteCall>& call : added) {
      active.push_back(std::make_unique<RemoteCall::Transfer>(std::move(call)));
      transfers_->start(active.back()->request(server_, api_key_), *active.back());
    }
    std::erase_if(active, [&](const auto& transfer) {
      if (transfer->ended()) return true;
      if (!transfer->cancelled()) return false;
      transfers_->abandon(*transfer);
      transfer->mark_cancelled();
      return true;
    });
    transfers_->run(kLongestWait);
  }
  for (const auto& transfer : active) {
    if (transfer->ended()) continue;
    transfers_->abandon(*transfer);
    transfer->mark_cancelled();
  }
}

}  // namespace hearth
