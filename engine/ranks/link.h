// Carries messages between the ranks of one engine: steps, hidden rows, token ids and results. A
// message is bytes; message.h writes and reads them. An implementation knows nothing of models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/result.h"

namespace hearth {

using Message = std::vector<std::byte>;

// Messages between two ranks arrive in order within a channel; channels do not wait for each other.
enum class Channel : uint8_t {
  kSetup,     // while ranks start: devices, layers, memory
  kCommands,  // rank 0 to all: steps, block moves, slots; before that, who times which link
  kRows,      // each rank to the next one: hidden rows; before that, what links are timed with
  kIds,       // last rank to those that embed them: sampled ids
  kResults,   // last rank to rank 0: what the engine gets of a step
  kRowsRead,  // each rank to the one before: shared memory that it has read (rank_loop.h)
  kSums,      // all ranks to all: sums, columns, attention and blocks, if they meet within a step
};
inline constexpr size_t kChannels = 7;

class Link {
 public:
  virtual ~Link() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t ranks() const = 0;

  // Hands a message over without waiting for its receiver, which may be this rank itself. Any
  // thread. Fails once a rank is lost.
  virtual Status send(uint32_t to, Channel channel, Message message) = 0;
  // Waits for the next message. Once any rank is lost, or `from` has ended, it fails with
  // kDeviceLost after the messages that had already arrived. Any thread, but one thread per source
  // and channel.
  virtual Result<Message> receive(uint32_t from, Channel channel) = 0;
  // From now on receive() notices messages of this channel at once, which costs the processor.
  // Before any thread waits for one.
  virtual void watch_closely(Channel channel) = 0;
  // Whether receive() would return at once.
  virtual bool ready(uint32_t from, Channel channel) = 0;
  // Gives up: receive() and send() fail with this reason from now on, here and on all other ranks.
  virtual void fail(const std::string& reason) = 0;
};

}  // namespace hearth
