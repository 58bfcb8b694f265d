// Parses server-sent events from the bytes of an HTTP response: head, chunks, lines, events. Does
// no I/O. Every size is bounded, because the peer need not be a Hearth server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace hearth {

struct HttpAddress {
  std::string host;  // without brackets
  std::string port;
  std::string text;  // "host:port", for messages and the Host header
};
// Parses "http://host:port". The scheme is optional, and so is the port (8080).
Result<HttpAddress> parse_http_address(std::string_view text);

struct ServerEvent {
  std::string name;  // empty if the event has none
  std::string data;
};

class EventReader {
 public:
  static constexpr size_t kMaxHeadBytes = 16 * 1024;
  static constexpr size_t kMaxEventBytes = size_t{4} << 20;

  // Consumes received bytes and appends complete events. An error means that this is not an event
  // stream, and is final; its message can be shown to the user.
  Status push(std::string_view bytes, std::vector<ServerEvent>& events);
  // The response head has arrived and announces an event stream.
  bool has_head() const { return state_ != State::kHead; }
  // The last chunk has arrived.
  bool ended() const { return state_ == State::kEnded; }

 private:
  enum class State : uint8_t { kHead, kBody, kChunkSize, kChunk, kChunkEnd, kEnded };

  Status parse_head();
  Status parse_chunk_size(std::string_view line);
  Status parse_body(std::string_view bytes, std::vector<ServerEvent>& events);
  void parse_line(std::string_view line, std::vector<ServerEvent>& events);

  State state_ = State::kHead;
  std::string pending_;  // incomplete head or chunk-size line
  uint64_t chunk_bytes_left_ = 0;
  std::string line_;   // incomplete line of the event stream
  ServerEvent event_;  // incomplete event
  bool has_data_ = false;
};

}  // namespace hearth
