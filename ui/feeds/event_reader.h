// Server-sent events out of the bytes of an HTTP reply: head, chunks, lines, events. Pure, with a
// bound on everything: the other side may be anything.
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
  std::string text;  // "host:port", for people and for the Host header
};
// "http://host:port", also without the scheme or the port, which is 8080 then.
Result<HttpAddress> parse_http_address(std::string_view text);

struct ServerEvent {
  std::string name;  // empty: none was given
  std::string data;
};

class EventReader {
 public:
  static constexpr size_t kMaxHeadBytes = 16 * 1024;
  static constexpr size_t kMaxEventBytes = size_t{4} << 20;

  // Takes bytes as they come and adds whole events. Fails, for good, on what is not a stream of
  // events; the message is for people.
  Status push(std::string_view bytes, std::vector<ServerEvent>& events);
  // The head has come, and it is a stream of events.
  bool has_head() const { return state_ != State::kHead; }
  // The last chunk has come.
  bool ended() const { return state_ == State::kEnded; }

 private:
  enum class State : uint8_t { kHead, kBody, kChunkSize, kChunk, kChunkEnd, kEnded };

  Status parse_head();
  Status parse_chunk_size(std::string_view line);
  Status parse_body(std::string_view bytes, std::vector<ServerEvent>& events);
  void parse_line(std::string_view line, std::vector<ServerEvent>& events);

  State state_ = State::kHead;
  std::string pending_;  // of the head, or of a line of chunk framing
  uint64_t chunk_bytes_left_ = 0;
  std::string line_;   // of events
  ServerEvent event_;  // as far as it has come
  bool has_data_ = false;
};

}  // namespace hearth
