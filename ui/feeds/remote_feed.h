// Feeds the dashboard from the /events stream of a `hearth serve`. The feed's own thread reads it;
// when the connection is lost, it reports why and reconnects with increasing delays.
//
// The stream carries steps only: no snapshots of blocks and sequences, and no latency histograms.
// It begins with the last steps before connecting. Totals count from the moment of connecting.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "runtime/result.h"
#include "tools/http/event_parser.h"
#include "tools/http/http_transfers.h"
#include "tools/server/step_event.h"
#include "ui/feeds/feed.h"

namespace hearth {

// The address of a server without /events at its end. Fails if it is not valid, or if the key has
// control characters, which would end its header.
Result<ServerUrl> watched_server(const std::string& url, const std::string& api_key);

struct RemoteFeedOptions {
  std::string api_key;         // empty: send none
  double first_retry_s = 0.5;  // delay before reconnecting; doubles each time
  double max_retry_s = 8;
  double connect_timeout_s = 5;
};

class RemoteFeed final : public Feed, private TransferHandler {
 public:
  // Fails only if `url` is not a valid address, or if this build has no libcurl. Connection errors
  // are reported by poll().
  static Result<std::unique_ptr<RemoteFeed>> create(const std::string& url,
                                                    const RemoteFeedOptions& options);
  ~RemoteFeed() override;

  // Increments the upper 32 bits of view.generation whenever the server has restarted.
  void poll(EngineView& view) override;

 private:
  RemoteFeed(ServerUrl server, const RemoteFeedOptions& options,
             std::unique_ptr<HttpTransfers> transfers);

  // On thread_:
  void loop();
  std::string stream_events();
  bool on_head(const TransferHead& head) override;
  bool on_body(std::string_view bytes) override;
  void on_end(const TransferEnd& end) override;
  void handle_event(const ServerEvent& event);
  void add_step(StepRecord record);
  void count(const StepRecord& record);
  bool stopping() const;

  const ServerUrl server_;
  const RemoteFeedOptions options_;
  const std::unique_ptr<HttpTransfers> transfers_;  // of thread_, which the destructor wakes
  EventParser parser_;                              // of the present connection
  std::string problem_;                             // why it ended; empty while it lasts

  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  bool connected_ = false;
  bool replied_ = false;  // in this attempt, so the delay starts over
  std::string failure_;
  std::optional<EngineHello> hello_;
  EngineClock::time_point hello_received_ = {};
  double watched_since_ = 0;  // on the server's clock; steps before it are history
  uint64_t restarts_ = 0;
  std::vector<StepRecord> steps_;
  uint64_t missed_ = 0, last_step_ = 0;
  double last_seconds_ = 0;
  SchedulerCounts counts_;
  EngineTotals totals_;
  std::unordered_set<RequestId> preempted_;  // for recompute, and not finished since

  std::thread thread_;
};

}  // namespace hearth
