// HTTP/1.x requests from bytes, as they come in. Pure: knows nothing of sockets. Strict where
// leniency lets two programs read one request differently, and limited in everything that a client
// could make long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

struct HttpRequest {
  std::string method, path, query;
  bool http_1_0 = false;
  bool keep_alive = true;                                    // the connection may be used again
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;

  // The first header of this name, in lower case; empty if there is none.
  std::string_view header(std::string_view name) const;
};

// A part of a path with its %XX as the bytes they stand for. What is no such escape stays.
std::string percent_decoded(std::string_view text);

struct HttpLimits {
  size_t target_bytes = 4096;
  size_t head_bytes = 16384;  // request line and headers together
  size_t headers = 100;
  uint64_t body_bytes = 8ull << 20;
};

// What is wrong with a request, as the reply says it. Nothing can be read after it.
struct HttpError {
  int status = 400;
  std::string message = {};
};

class HttpParser {
 public:
  explicit HttpParser(const HttpLimits& limits) : limits_(limits) {}

  enum class State { kHead, kBody, kChunkSize, kChunk, kChunkEnd, kTrailers, kDone, kFailed };

  // Takes bytes from the front of `input`; what belongs to the next request is left there.
  State feed(std::string& input);

  State state() const { return state_; }
  // The client waits for "100 Continue" before it sends the body.
  bool expects_continue() const { return expects_continue_; }
  // REQUIRES: kDone.
  HttpRequest take() { return std::move(request_); }
  // REQUIRES: kFailed.
  const HttpError& error() const { return error_; }

 private:
  State fail(int status, std::string message);
  State read_head(std::string_view head);
  bool read_request_line(std::string_view line);
  bool read_header(std::string_view line);
  State plan_body();
  State read_body(std::string& input);
  State read_chunk_size(std::string& input);
  State read_chunk(std::string& input);
  State read_trailer(std::string& input);

  const HttpLimits limits_;
  State state_ = State::kHead;
  HttpRequest request_;
  HttpError error_;
  uint64_t left_ = 0;  // bytes of the body or of the chunk that are still to come
  size_t trailer_bytes_ = 0;
  bool expects_continue_ = false;
};

// "Not Found" and the like.
std::string_view http_status_text(int status);

}  // namespace hearth
