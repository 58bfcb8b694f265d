// Publishes the events of a prefix cache over ZeroMQ as vLLM does, so that gateways that route by
// prefix can follow what this replica has cached. One thread does all of it; the engine only writes
// to the log, and a subscriber that is too slow misses batches.
//
// A message on the PUB socket has three frames: the topic, the batch's sequence number (8 bytes,
// big-endian, from 0), and the batch (event_batch.h). After a gap, a subscriber asks the ROUTER
// socket for everything from a number on: an empty frame and the number. The answer is one message
// per batch that is still kept, each with an empty frame, its number and the batch; then one with
// an empty frame, the number -1 and an empty batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/result.h"
#include "tools/kv_events/block_log.h"
#include "tools/kv_events/event_batch.h"

namespace hearth {

struct EventPublisherOptions {
  // "tcp://*:5557" and "@tcp://127.0.0.1:5557" bind, "tcp://collector:5557" connects.
  std::string endpoint;
  std::string replay_endpoint;  // binds; empty: there is no replay
  EventEncoding encoding = EventEncoding::kMaps;
  size_t log_events = 1 << 16;           // see BlockLog
  size_t kept_batches = 10'000;          // for replay
  size_t kept_bytes = size_t{64} << 20;  // of them
};

class EventPublisher {
 public:
  // Binds or connects. Fails if the build has no ZeroMQ.
  static Result<std::unique_ptr<EventPublisher>> create(const EventPublisherOptions& options);
  // Publishes what is in the log, if start() was called.
  ~EventPublisher();
  EventPublisher(const EventPublisher&) = delete;
  EventPublisher& operator=(const EventPublisher&) = delete;

  // What the scheduler observes blocks with. Its contents wait for start().
  BlockLog& log();
  // Publishes from now on, under this topic. To be called once.
  void start(std::string topic);

  // As ZeroMQ resolved them: with a port where the options have "*".
  const std::string& endpoint() const;
  const std::string& replay_endpoint() const;

 private:
  class Implementation;
  explicit EventPublisher(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace hearth
