// The HTTP server over one engine: OpenAI's endpoints, metrics, events, a page. Each request under
// way has a thread of its own, which waits on its streams; the engine never waits for any of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/result.h"
#include "tools/server/served_model.h"

namespace hearth {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;          // 0: any that is free
  std::string api_key;      // empty: none is asked for
  std::string cors_origin;  // allowed origin; empty: no CORS headers
  std::string model_name = "hearth";
  uint64_t most_body_bytes = 8ull << 20;
  uint32_t most_connections = 4096;
  double read_seconds = 30;      // for a client to send a request
  double request_seconds = 600;  // a request's time limit; 0: none
};

class HttpServer {
 public:
  // Answers /health with "loading" until a model is given.
  static Result<std::unique_ptr<HttpServer>> create(const ServerOptions& options);
  // Without drain(): requests under way are cancelled and their clients told so, readers of /events
  // get an end. Waits no longer than a client may take to send or to read.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

  // From now on requests are served. Once; what `model` refers to outlives the server, or drain().
  void serve(const ServedModel& model);
  // The model could not be loaded: /health says so.
  void fail(std::string reason);
  // Takes no new requests, lets those under way end, then closes. Blocks.
  void drain();

 private:
  class Implementation;
  explicit HttpServer(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace hearth
