// A subscriber of KV events, as a gateway has one: it follows the events and rebuilds the set of
// cached blocks. It can be told to lose batches; what it misses it asks for again.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zmq.h>

namespace hearth::testing {

class EventSubscriber {
 public:
  struct Cached {
    std::vector<uint32_t> tokens;
    nlohmann::json parent;  // a hash, or null
  };

  // `kept_messages`: how many messages wait unread before others are dropped; 0: any number.
  EventSubscriber(const std::string& endpoint, const std::string& replay, int kept_messages = 0)
      : context_(zmq_ctx_new()),
        events_(zmq_socket(context_, ZMQ_SUB)),
        replay_(zmq_socket(context_, ZMQ_DEALER)) {
    const int linger = 0;
    for (void* socket : {events_, replay_})
      zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof(int));
    zmq_setsockopt(events_, ZMQ_RCVHWM, &kept_messages, sizeof(int));
    const int any_number = 0;
    zmq_setsockopt(replay_, ZMQ_RCVHWM, &any_number, sizeof(int));
    zmq_setsockopt(events_, ZMQ_SUBSCRIBE, "", 0);
    EXPECT_EQ(zmq_connect(events_, endpoint.c_str()), 0);
    EXPECT_EQ(zmq_connect(replay_, replay.c_str()), 0);
  }
  ~EventSubscriber() {
    zmq_close(events_);
    zmq_close(replay_);
    zmq_ctx_term(context_);
  }
  EventSubscriber(const EventSubscriber&) = delete;
  EventSubscriber& operator=(const EventSubscriber&) = delete;

  // Handles one message, if one comes in time. Batches that `loses` picks are thrown away.
  bool follow(int timeout_ms, const std::function<bool(uint64_t)>& loses = {}) {
    if (!wait(events_, timeout_ms)) return false;
    const Message message = receive(events_);
    EXPECT_EQ(message.size(), 3u);
    topic = text_of(message[0]);
    const uint64_t sequence = number_of(message[1]);
    if (loses && loses(sequence)) {
      ++lost;
      return true;
    }
    if (sequence > next_) catch_up(sequence);
    if (sequence == next_) apply(sequence, message[2]);
    return true;
  }

  // Asks for everything that is kept from the first missing batch on. Batches that are not kept any
  // more are counted as `missing`.
  void catch_up(uint64_t until = ~uint64_t{0}) {
    ++replays;
    std::array<uint8_t, 8> from = {};
    for (size_t i = 0; i < 8; ++i) from[i] = static_cast<uint8_t>(next_ >> (56 - 8 * i));
    zmq_send(replay_, "", 0, ZMQ_SNDMORE);
    zmq_send(replay_, from.data(), from.size(), 0);
    for (;;) {
      if (!wait(replay_, 5000)) {
        ADD_FAILURE() << "no replay";
        return;
      }
      const Message message = receive(replay_);
      ASSERT_EQ(message.size(), 3u);
      EXPECT_TRUE(message[0].empty());
      const uint64_t sequence = number_of(message[1]);
      if (sequence == ~uint64_t{0}) {
        EXPECT_TRUE(message[2].empty());
        return;
      }
      if (sequence < next_ || sequence >= until) continue;
      missing += sequence - next_;
      apply(sequence, message[2]);
    }
  }

  std::string topic;
  std::map<uint64_t, Cached> blocks;  // by hash
  uint64_t events = 0, batches = 0, lost = 0, replays = 0, missing = 0;
  uint64_t clears = 0, unknown_removed = 0;
  uint64_t next() const { return next_; }

 private:
  using Frame = std::vector<uint8_t>;
  using Message = std::vector<Frame>;

  static bool wait(void* socket, int timeout_ms) {
    zmq_pollitem_t item{socket, 0, ZMQ_POLLIN, 0};
    return zmq_poll(&item, 1, timeout_ms) > 0;
  }

  static Message receive(void* socket) {
    Message frames;
    for (int more = 1; more != 0;) {
      zmq_msg_t part;
      zmq_msg_init(&part);
      EXPECT_GE(zmq_msg_recv(&part, socket, 0), 0);
      const auto* const data = static_cast<const uint8_t*>(zmq_msg_data(&part));
      frames.emplace_back(data, data + zmq_msg_size(&part));
      more = zmq_msg_more(&part);
      zmq_msg_close(&part);
    }
    return frames;
  }

  static uint64_t number_of(const Frame& frame) {
    EXPECT_EQ(frame.size(), 8u);
    uint64_t number = 0;
    for (const uint8_t byte : frame) number = number << 8 | byte;
    return number;
  }
  static std::string text_of(const Frame& frame) { return {frame.begin(), frame.end()}; }

  // Both encodings, told apart by their shape.
  void apply(uint64_t sequence, const Frame& bytes) {
    next_ = sequence + 1;
    ++batches;
    const nlohmann::json batch = nlohmann::json::from_msgpack(bytes);
    ASSERT_TRUE(batch.is_array() && batch.size() == 3) << batch;
    for (const nlohmann::json& event : batch[1]) {
      const bool is_map = event.is_object();
      const auto field = [&](const char* name, size_t place) {
        return is_map ? event.at(name) : event.at(place);
      };
      const std::string type = field("type", 0);
      if (type == "AllBlocksCleared") {
        ++clears;
        ++events;
        blocks.clear();
        continue;
      }
      const std::vector<uint64_t> hashes = field("block_hashes", 1);
      events += hashes.size();
      if (type == "BlockRemoved") {
        for (const uint64_t hash : hashes) unknown_removed += 1 - blocks.erase(hash);
        continue;
      }
      ASSERT_EQ(type, "BlockStored");
      const size_t block_tokens = field("block_size", 4);
      const std::vector<uint32_t> tokens = field("token_ids", 3);
      ASSERT_EQ(tokens.size(), hashes.size() * block_tokens);
      nlohmann::json parent = field("parent_block_hash", 2);
      for (size_t i = 0; i < hashes.size(); ++i) {
        const auto first = tokens.begin() + static_cast<ptrdiff_t>(i * block_tokens);
        const bool is_new = blocks.try_emplace(hashes[i]).second;
        EXPECT_TRUE(is_new) << "a block is stored twice";
        blocks[hashes[i]] = {{first, first + static_cast<ptrdiff_t>(block_tokens)}, parent};
        parent = hashes[i];
      }
    }
  }

  void* const context_;
  void* const events_;
  void* const replay_;
  uint64_t next_ = 0;
};

}  // namespace hearth::testing
