// Reads HTTP/1.x requests from bytes as they arrive. Pure: knows nothing of sockets. Strict
// wherever leniency would let a proxy and this server read one request differently, and with a
// limit on everything that a client could make long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/server/memory_budget.h"

namespace hearth {

struct HttpRequest {
  std::string method, path, query;
  bool http_1_0 = false;
  bool keep_alive = true;                                    // the connection may be used again
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  MemoryLease memory;  // what the body takes of the server's budget

  // The first header of this name, which must be in lower case; empty if there is none.
  std::string_view header(std::string_view name) const;
};

// Replaces each %XX of a path by the byte it stands for. Anything else that looks like an escape is
// left alone.
std::string percent_decoded(std::string_view text);

struct HttpLimits {
  size_t target_bytes = 4096;
  size_t head_bytes = 16384;  // request line and headers together
  size_t headers = 100;
  uint64_t body_bytes = 8ull << 20;
};

// What is wrong with a request, as the reply says it. The connection cannot be read any further.
struct HttpError {
  int status = 400;
  std::string message = {};
};

class HttpParser {
 public:
  explicit HttpParser(const HttpLimits& limits) : limits_(limits) {}

  enum class State { kHead, kBody, kChunkSize, kChunk, kChunkEnd, kTrailers, kDone, kFailed };

  // Takes bytes from the front of `input`; bytes of the next request are left there.
  State feed(std::string& input);

  State state() const { return state_; }
  // The request line and the headers are complete: head() has them.
  bool head_read() const { return state_ != State::kHead && state_ != State::kFailed; }
  const HttpRequest& head() const { return request_; }
  bool has_body() const { return !request_.body.empty() || state_ != State::kDone; }
  // What the part of the body that has arrived takes.
  size_t body_memory_bytes() const { return request_.body.capacity(); }
  // The client waits for "100 Continue" before it sends the body.
  bool expects_continue() const { return expects_continue_; }
  // REQUIRES: kDone.
  HttpRequest take() { return std::move(request_); }
  // REQUIRES: kFailed.
  const HttpError& error() const { return error_; }

 private:
  State fail(int status, std::string message);
  State take_head(std::string_view& input);
  State read_head(std::string_view head);
  bool read_request_line(std::string_view line);
  bool read_header(std::string_view line);
  State plan_body();
  State read_body(std::string_view& input);
  State read_chunk_size(std::string_view& input);
  State read_chunk(std::string_view& input);
  State read_trailer(std::string_view& input);

  const HttpLimits limits_;
  State state_ = State::kHead;
  HttpRequest request_;
  HttpError error_;
  uint64_t left_ = 0;  // bytes of the body or of the chunk that have not arrived yet
  size_t empty_lines_ = 0, trailer_bytes_ = 0;
  bool expects_continue_ = false;
};

// "Not Found" and the like.
std::string_view http_status_text(int status);

}  // namespace hearth
