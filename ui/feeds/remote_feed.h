// Shows the engine of a `hearth serve` elsewhere, through its /events. A thread of its own reads;
// when the connection is lost it tries again, waiting longer each time, and says what is wrong.
//
// Of the blocks and sequences there are no details, and latencies are not told: steps only. Totals
// count from when it was connected.
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
#include "tools/server/step_event.h"
#include "ui/feeds/event_reader.h"
#include "ui/feeds/feed.h"

namespace hearth {

struct RemoteFeedOptions {
  std::string api_key;         // empty: none
  double first_retry_s = 0.5;  // before trying again; doubles each time
  double max_retry_s = 8;
  double connect_timeout_s = 5;
};

class RemoteFeed final : public Feed {
 public:
  // Fails on an address that is none; whether anybody is there, poll() says.
  static Result<std::unique_ptr<RemoteFeed>> create(const std::string& url,
                                                    const RemoteFeedOptions& options);
  ~RemoteFeed() override;

  // After the server was started anew, the upper half of view.generation has counted up.
  void poll(EngineView& view) override;

 private:
  RemoteFeed(HttpAddress address, const RemoteFeedOptions& options);

  // The thread's.
  void loop();
  Status stream_events();
  void handle_event(const ServerEvent& event);
  void add_step(StepRecord record);
  bool wait_for(int socket, short events, double seconds) const;
  bool stopping() const;

  const HttpAddress address_;
  const RemoteFeedOptions options_;
  int wake_[2] = {-1, -1};  // a pipe: written to when it is time to stop

  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  bool connected_ = false;
  bool replied_ = false;  // in this attempt: the pauses begin anew
  std::string failure_;
  std::optional<EngineHello> hello_;
  EngineClock::time_point hello_received_ = {};
  uint64_t restarts_ = 0;
  std::vector<StepRecord> steps_;
  uint64_t missed_ = 0, last_step_ = 0;
  double last_seconds_ = 0;
  SchedulerCounts counts_;
  EngineTotals totals_;
  std::unordered_set<RequestId> preempted_;  // and to be computed again, if they have not ended

  std::thread thread_;
};

}  // namespace hearth
