// The accepted requests, from the moment the engine thread takes them over until they end. Used by
// the engine thread only.
//
// Every request ends exactly once, with a reason. At its end the scheduler releases its blocks and
// slot, the metrics count it, and its stream is closed, in this order: a reader who sees the end
// finds it counted, and can have the queue place. With delivery by batch, the last two wait until
// its batch has ended.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/active_request.h"
#include "engine/batch_delivery.h"
#include "engine/generation.h"
#include "engine/mailbox.h"
#include "engine/publisher.h"
#include "engine/scheduling/scheduler.h"
#include "engine/step_record.h"
#include "engine/time_source.h"

namespace hearth {

class RequestTable {
 public:
  // What the table keeps up to date; all of it outlives the table.
  struct Links {
    Scheduler& scheduler;
    Mailbox& mailbox;  // counts queue places and ends
    Publisher& publisher;
    const TimeSource& time;
    SharedNgrams* outputs = nullptr;  // gets the output of requests that end; may be null
  };
  // Reserves room for what `sequences` running sequences report per step.
  RequestTable(const Links& links, size_t sequences);
  RequestTable(const RequestTable&) = delete;
  RequestTable& operator=(const RequestTable&) = delete;

  // Takes over a request and passes it to the scheduler. If that refuses it, the request ends.
  // REQUIRES: the id was never used before.
  void accept(std::unique_ptr<ActiveRequest> request);
  // Notes that a request got a slot; the first time, it gives its queue place back. If `batch` is
  // not 0, its tokens are held back until all members of that batch have ended.
  void admit(ActiveRequest& request, uint64_t batch, EngineClock::time_point now);
  // Delivers everything that is held back, and nothing more is.
  void release_held();

  bool empty() const { return requests_.empty(); }
  // Null if it has ended.
  ActiveRequest* find(RequestId id) const;
  // REQUIRES: it has not ended.
  ActiveRequest& at(RequestId id) const { return *requests_.at(id); }

  // Delivers an answer that is complete and held back as it is; ignores other requests that have
  // ended already. The requests of one beam search end together.
  void end(RequestId id, FinishReason reason, std::string message = {});
  void end_all(FinishReason reason, const std::string& message);
  // Ends the requests whose time limit has passed.
  void end_expired(EngineClock::time_point now);
  // When the next time limit passes; empty if no request has one.
  std::optional<EngineClock::time_point> next_deadline() const;

  // Delivers the tokens that can no longer become part of a banned string.
  void deliver_certain(ActiveRequest& request);

  // Moves the arrivals and ends since the last call into the record.
  void report(StepRecord& record);

 private:
  void end_beams(const ActiveRequest& request, FinishReason reason, const std::string& message);
  void share_output(const ActiveRequest& request);
  void deliver_ready();
  void deliver_end(BatchDelivery::Ended ended);
  void deliver_held_tokens(ActiveRequest& request);

  Links links_;
  std::unordered_map<RequestId, std::unique_ptr<ActiveRequest>> requests_;
  std::set<std::pair<EngineClock::time_point, RequestId>> deadlines_;
  BatchDelivery held_;
  std::vector<BatchDelivery::Ended> ready_;  // scratch space of end() and release_held()
  RequestId fork_parent_ = 0;                // requests with forks_first fork from this one
  // Since the last report().
  std::vector<StepRecord::Arrival> arrived_;
  std::vector<RequestId> finished_;
  std::vector<RequestId> cancelled_;  // those of finished_ that were cancelled
};

}  // namespace hearth
