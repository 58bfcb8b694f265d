// The HTTP server over one engine: OpenAI's endpoints, metrics, events, a page. Each request in
// flight has a thread of its own, which waits for its tokens; the engine waits for none of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/result.h"
#include "tools/server/served_model.h"

namespace hearth {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                         // 0: a free one
  std::vector<std::string> api_keys;       // a client must send one of them; none: no key needed
  std::vector<std::string> allowed_hosts;  // names the server answers to without a key
  std::string cors_origin;                 // allowed origin; empty: no CORS headers
  uint64_t most_body_bytes = 8ull << 20;   // of one request
  uint64_t bodies_bytes = 128ull << 20;    // of all requests that are being read and parsed
  uint64_t backlog_bytes = 1ull << 20;     // of a stream that its client has not read yet
  uint32_t most_connections = 4096;
  double read_seconds = 30;      // for a client to send a request
  double write_seconds = 30;     // for a client to read some of its reply
  double request_seconds = 600;  // a request's time limit; 0: none
  double comment_seconds = 5;    // after which a silent stream gets a comment
  bool control = false;          // POST /control may change policy and limits and pause the engine
};

class HttpServer {
 public:
  // Answers /health with "loading" until a model is given.
  static Result<std::unique_ptr<HttpServer>> create(const ServerOptions& options);
  // Without drain(): open requests are cancelled and their clients told so, streams of /events
  // end. Waits no longer than a client may take to send or to read.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

  // Serves requests from now on. To be called once. REQUIRES: what `model` refers to outlives the
  // server, or drain().
  void serve(const ServedModel& model);
  // The model could not be loaded: /health says so.
  void fail(std::string reason);
  // Takes no new requests, lets open ones end, then closes. Cancels those that have not ended
  // after `seconds`. Blocks.
  void drain(double seconds = 1e9);

 private:
  class Implementation;
  explicit HttpServer(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace hearth
