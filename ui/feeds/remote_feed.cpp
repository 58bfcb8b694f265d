#include "ui/feeds/remote_feed.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hearth {
namespace {

// Bounds memory while the window is not polling.
constexpr size_t kMaxQueuedSteps = 16384;

constexpr std::string_view kEventsPath = "/events";
constexpr size_t kHistorySteps = 10'000;  // as many as can be gone back to

std::string status_problem(int status) {
  switch (status) {
    case 401:
      return "the server requires an API key: pass it with --api-key";
    case 404:
      return "the server has no /events endpoint: is it `hearth serve`?";
    case 503:
      return "the server is not ready: it is loading its model or shutting down";
    default:
      return fmt::format("the server answered with HTTP status {}", status);
  }
}

}  // namespace

Result<ServerUrl> watched_server(const std::string& url, const std::string& api_key) {
  HEARTH_ASSIGN(ServerUrl server, parse_server_url(url));
  if (server.path.ends_with(kEventsPath))
    server.path.resize(server.path.size() - kEventsPath.size());
  for (const char c : api_key)
    if (static_cast<unsigned char>(c) < ' ')
      return Error{ErrorKind::kInvalid,
                   "the API key contains a line break or another control character"};
  return server;
}

Result<std::unique_ptr<RemoteFeed>> RemoteFeed::create(const std::string& url,
                                                       const RemoteFeedOptions& options) {
  HEARTH_ASSIGN(ServerUrl server, watched_server(url, options.api_key));
  HEARTH_ASSIGN(std::unique_ptr<HttpTransfers> transfers, HttpTransfers::create());
  std::unique_ptr<RemoteFeed> feed(
      new RemoteFeed(std::move(server), options, std::move(transfers)));
  feed->thread_ = std::thread([raw = feed.get()] { raw->loop(); });
  return feed;
}

RemoteFeed::RemoteFeed(ServerUrl server, const RemoteFeedOptions& options,
                       std::unique_ptr<HttpTransfers> transfers)
    : server_(std::move(server)), options_(options), transfers_(std::move(transfers)) {}

RemoteFeed::~RemoteFeed() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  transfers_->wake();
  if (thread_.joinable()) thread_.join();
}

bool RemoteFeed::stopping() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

void RemoteFeed::loop() {
  double pause = options_.first_retry_s;
  while (!stopping()) {
    const std::string problem = stream_events();
    std::unique_lock lock(mutex_);
    connected_ = false;
    if (std::exchange(replied_, false)) pause = options_.first_retry_s;
    failure_ = fmt::format("{}: {}; retrying in {:.2g} s", server_.place(), problem, pause);
    stopped_.wait_for(lock, std::chrono::duration<double>(pause), [&] { return stop_; });
    pause = std::min(pause * 2, options_.max_retry_s);
  }
}

// Connects and reads until the connection ends, and returns why it did; nothing if the feed is
// stopping.
std::string RemoteFeed::stream_events() {
  constexpr double kGlance = 1;  // seconds; the destructor need not wait for it
  parser_ = {};
  problem_.clear();
  // After the headers, which come at once, an idle engine sends nothing, so there is no limit.
  transfers_->start({.server = server_,
                     .path = fmt::format("{}?history={}", kEventsPath, kHistorySteps),
                     .body = {},
                     .key = options_.api_key,
                     .headers = {"Accept: text/event-stream"},
                     .connect_seconds = options_.connect_timeout_s,
                     .head_seconds = 2 * options_.connect_timeout_s},
                    *this);
  while (problem_.empty() && !stopping()) transfers_->run(kGlance);
  transfers_->abandon(*this);
  return problem_;
}

bool RemoteFeed::on_head(const TransferHead& head) {
  if (head.status != 200)
    problem_ = status_problem(head.status);
  else if (!head.content_type.starts_with("text/event-stream"))
    problem_ = "the server's /events is not an event stream: is it `hearth serve`?";
  if (!problem_.empty()) return false;
  const std::lock_guard lock(mutex_);
  replied_ = connected_ = true;
  failure_.clear();
  return true;
}

bool RemoteFeed::on_body(std::string_view bytes) {
  std::vector<ServerEvent> events;
  const Status status = parser_.push(bytes, events);
  for (const ServerEvent& event : events) handle_event(event);
  if (!status.ok()) problem_ = status.error().message;
  return status.ok();
}

void RemoteFeed::on_end(const TransferEnd& end) {
  if (problem_.empty()) problem_ = end.ok() ? "the server closed the connection" : end.message;
}

void RemoteFeed::handle_event(const ServerEvent& event) {
  if (event.name == kHelloEvent) {
    Result<EngineHello> hello = parse_hello_event(event.data);
    const std::lock_guard lock(mutex_);
    if (!hello.ok()) {
      failure_ = fmt::format("{}: {}", server_.place(), hello.error().message);
      return;
    }
    const bool restarted =
        hello_ && (hello->instance != hello_->instance || hello->now < last_seconds_);
    if (!hello_ || restarted) watched_since_ = restarted ? 0 : hello->now;
    if (restarted) {
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
      failure_ = fmt::format("{}: {}", server_.place(), counts.error().message);
    return;
  }
  if (!event.name.empty()) return;
  Result<StepRecord> record = parse_step_event(event.data);
  const std::lock_guard lock(mutex_);
  if (!record.ok()) {
    failure_ = fmt::format("{}: {}", server_.place(), record.error().message);
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
  if (record.end_seconds >= watched_since_) count(record);
  if (steps_.size() == kMaxQueuedSteps) {
    steps_.erase(steps_.begin(), steps_.begin() + kMaxQueuedSteps / 2);
    missed_ += kMaxQueuedSteps / 2;
  }
  steps_.push_back(std::move(record));
}

// REQUIRES: mutex_ is held.
void RemoteFeed::count(const StepRecord& record) {
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
}

void RemoteFeed::poll(EngineView& view) {
  const std::lock_guard lock(mutex_);
  view.new_steps.clear();
  std::swap(view.new_steps, steps_);
  view.missed_steps = std::exchange(missed_, 0);
  view.connected = connected_;
  view.failure = failure_;
  view.generation = (view.generation & 0xffffffff) | restarts_ << 32;
  view.state = hello_ && hello_->paused ? EngineState::kPaused : EngineState::kRunning;
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
    view.controllable = connected_ && hello_->controllable;
    view.most_limits = hello_->most;
    view.vocabulary = hello_->vocabulary;
    view.pace = hello_->pace;
    view.source = fmt::format("{} on {}, at {}", hello_->model, hello_->device, server_.place());
  } else {
    // Without a hello event (an older server), derive what the steps reveal.
    view.limits.pool_blocks = counts_.blocks_used + counts_.blocks_cached + counts_.blocks_free;
    view.source = server_.place();
  }
}

}  // namespace hearth
