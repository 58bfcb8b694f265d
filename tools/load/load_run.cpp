#include "tools/load/load_run.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "tools/load/stream_reader.h"

namespace hearth {
namespace {

using LoadClock = std::chrono::steady_clock;

constexpr double kDefaultRetrySeconds = 1, kMostRetrySeconds = 60;
constexpr size_t kMostErrorBytes = 4096;

class LoadDriver {
 public:
  LoadDriver(HttpTransfers& transfers, const LoadedServer& target, const Trace& trace,
             const LoadRunSettings& settings, const LoadWatch& watch)
      : transfers_(transfers),
        target_(target),
        trace_(trace),
        settings_(settings),
        watch_(watch),
        prompts_(target, settings.prompt_seed),
        start_(LoadClock::now()) {
    run_.requests.resize(trace.requests.size());
  }

  LoadRun run() {
    constexpr double kGlance = 0.1;
    while (ended_ < run_.requests.size()) {
      if (watch_.go_on && !watch_.go_on()) {
        run_.interrupted = true;
        break;
      }
      const double next = send_due();
      transfers_.run(std::clamp(next - now(), 0.0, kGlance));
    }
    interrupt_streams();
    run_.end = run_.interrupted ? now() : last_end_;
    return std::move(run_);
  }

 private:
  class Stream;
  struct Retry {
    double time = 0;
    size_t index = 0;
    bool operator>(const Retry& other) const { return time > other.time; }
  };

  double now() const { return std::chrono::duration<double>(LoadClock::now() - start_).count(); }

  // Sends what is due and returns when there will be more to send.
  double send_due() {
    constexpr double kNever = 1e9;
    double next = kNever;
    while (next_ < trace_.requests.size()) {
      const double arrival = trace_.requests[next_].arrival_seconds;
      if (settings_.clients > 0 ? in_flight_ >= settings_.clients : arrival > now()) {
        if (settings_.clients == 0) next = arrival;
        break;
      }
      run_.requests[next_].timing.arrival = settings_.clients > 0 ? now() : arrival;
      ++in_flight_;
      send(next_++);
    }
    while (!retries_.empty() && retries_.top().time <= now()) {
      const size_t index = retries_.top().index;
      retries_.pop();
      send(index);
    }
    return retries_.empty() ? next : std::min(next, retries_.top().time);
  }

  void send(size_t index);
  void finish(size_t index, LoadedRequest::State state);
  void retry_or_refuse(size_t index, const TransferHead& head);
  void interrupt_streams();

  HttpTransfers& transfers_;
  const LoadedServer& target_;
  const Trace& trace_;
  const LoadRunSettings& settings_;
  const LoadWatch& watch_;
  const LoadPrompts prompts_;
  const LoadClock::time_point start_;
  LoadRun run_;
  size_t next_ = 0;       // request of the trace to send
  size_t in_flight_ = 0;  // sent and not over, including those that wait for a retry
  size_t ended_ = 0;
  double last_end_ = 0;
  std::vector<std::unique_ptr<Stream>> streams_;  // by request; null if none is open
  std::priority_queue<Retry, std::vector<Retry>, std::greater<>> retries_;
};

// One attempt at a request.
class LoadDriver::Stream final : public TransferHandler {
 public:
  Stream(LoadDriver& driver, size_t index) : driver_(driver), index_(index) {}

  bool on_head(const TransferHead& head) override {
    head_ = head;
    return true;
  }

  bool on_body(std::string_view bytes) override {
    const double time = driver_.now();
    if (head_.status != 200) {
      error_body_ +=
          bytes.substr(0, kMostErrorBytes - std::min(kMostErrorBytes, error_body_.size()));
      return true;
    }
    const Status status = reader_.push(bytes, time, reply_);
    if (!status.ok()) malformed_ = status.error().message;
    return status.ok();
  }

  void on_end(const TransferEnd& end) override {
    const std::unique_ptr<Stream> self = std::move(driver_.streams_[index_]);
    LoadedRequest& request = driver_.run_.requests[index_];
    if (head_.status == 429 || head_.status == 503) return driver_.retry_or_refuse(index_, head_);
    take_reply(request);
    if (!malformed_.empty())
      fail("malformed stream", malformed_);
    else if (!end.ok() && head_.status == 200 && end.failure == TransferFailure::kBroken)
      fail("broken stream", end.message);
    else if (!end.ok())
      fail(kind_of(end.failure), end.message);
    else if (head_.status != 200)
      fail(fmt::format("HTTP status {}", head_.status), error_text_of(error_body_));
    else if (!reply_.error.empty())
      fail("error in the stream", reply_.error);
    else if (!reply_.complete)
      fail("broken stream", "the stream ended before its answer did");
    else
      driver_.finish(index_, LoadedRequest::State::kCompleted);
  }

  // What has come so far.
  void take_reply(LoadedRequest& request) {
    request.timing.token_times = std::move(reply_.text_times);
    request.server_counted = reply_.generated_tokens.has_value();
    request.tokens = reply_.generated_tokens.value_or(request.timing.token_times.size());
    request.prompt_tokens =
        reply_.prompt_tokens.value_or(driver_.trace_.requests[index_].prompt_tokens);
  }

 private:
  static const char* kind_of(TransferFailure failure) {
    switch (failure) {
      case TransferFailure::kUnreachable:
        return "no connection";
      case TransferFailure::kTls:
        return "no TLS connection";
      case TransferFailure::kTimeout:
        return "timeout";
      case TransferFailure::kNotHttp:
        return "not HTTP";
      default:
        return "connection lost";
    }
  }

  void fail(std::string kind, std::string detail) {
    LoadedRequest& request = driver_.run_.requests[index_];
    request.error = std::move(kind);
    request.error_detail = std::move(detail);
    driver_.finish(index_, LoadedRequest::State::kFailed);
  }

  LoadDriver& driver_;
  const size_t index_;
  TransferHead head_;
  StreamReader reader_;
  StreamedReply reply_;
  std::string malformed_, error_body_;
};

void LoadDriver::send(size_t index) {
  streams_.resize(std::max(streams_.size(), index + 1));
  streams_[index] = std::make_unique<Stream>(*this, index);
  TransferRequest request = target_.request(prompts_.body(trace_.requests[index], index));
  request.total_seconds = settings_.timeout_seconds;
  transfers_.start(std::move(request), *streams_[index]);
}

void LoadDriver::finish(size_t index, LoadedRequest::State state) {
  LoadedRequest& request = run_.requests[index];
  request.state = state;
  request.timing.failed = state != LoadedRequest::State::kCompleted;
  request.end = last_end_ = now();
  ++ended_;
  --in_flight_;
  if (watch_.ended) watch_.ended(request);
}

void LoadDriver::retry_or_refuse(size_t index, const TransferHead& head) {
  LoadedRequest& request = run_.requests[index];
  if (++request.refusals > settings_.retries) {
    request.error = fmt::format("HTTP status {}", head.status);
    return finish(index, LoadedRequest::State::kRefused);
  }
  const double pause =
      std::min(head.retry_after_seconds.value_or(kDefaultRetrySeconds), kMostRetrySeconds);
  retries_.push({now() + pause, index});
}

// Keeps what streams have received that were interrupted.
void LoadDriver::interrupt_streams() {
  for (size_t index = 0; index < streams_.size(); ++index) {
    if (streams_[index] == nullptr) continue;
    transfers_.abandon(*streams_[index]);
    streams_[index]->take_reply(run_.requests[index]);
    streams_[index].reset();
  }
}

}  // namespace

LoadRun run_load(HttpTransfers& transfers, const LoadedServer& target, const Trace& trace,
                 const LoadRunSettings& settings, const LoadWatch& watch) {
  return LoadDriver(transfers, target, trace, settings, watch).run();
}

}  // namespace hearth
