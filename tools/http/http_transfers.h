// HTTP requests to servers, any number at a time on one thread, over libcurl's multi interface.
// http:// and https://, by HTTP/1.1, so that every open request has a connection of its own;
// connections are kept and used again. Redirects are not followed.
//
// One thread at a time may use an object, except for wake(). SIGPIPE is ignored once one exists.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"
#include "tools/http/server_url.h"

namespace hearth {

struct TransferRequest {
  ServerUrl server;
  std::string path;                  // with its slash: "/v1/models"
  std::string body;                  // of a POST with a JSON body; empty: a GET
  std::string key;                   // sent as a bearer token; empty: none
  std::vector<std::string> headers;  // others: "Accept: text/event-stream"
  double connect_seconds = 10;       // for the connection to be made
  double head_seconds = 0;           // until the response's headers are there; 0: no limit
  double total_seconds = 0;          // until the response has ended; 0: no limit
};

struct TransferHead {
  int status = 0;
  std::string content_type;
  std::optional<double> retry_after_seconds;  // what the server asks for
};

enum class TransferFailure {
  kNone,
  kStopped,      // the handler wanted no more
  kUnreachable,  // no such host, or nothing listens there
  kTls,          // the certificate is not trusted, or there is no TLS
  kTimeout,
  kNotHttp,
  kBroken,  // the connection ended before the response did
};

struct TransferEnd {
  TransferFailure failure = TransferFailure::kNone;
  std::string message;  // what went wrong, for a user, without the address

  bool ok() const { return failure == TransferFailure::kNone; }
};

// What happens to one request. Called by HttpTransfers::run() on its thread.
class TransferHandler {
 public:
  virtual ~TransferHandler() = default;
  // The response's headers have arrived, and then parts of its body; false ends the transfer.
  virtual bool on_head(const TransferHead& head) = 0;
  virtual bool on_body(std::string_view bytes) = 0;
  // The last call. It may start other transfers and destroy this handler.
  virtual void on_end(const TransferEnd& end) = 0;
};

class HttpTransfers {
 public:
  // False if this build has no libcurl.
  static bool available();
  // Fails if this build has no libcurl; the message says what to install.
  static Result<std::unique_ptr<HttpTransfers>> create();
  // Ends open requests without a call to its handlers.
  ~HttpTransfers();
  HttpTransfers(const HttpTransfers&) = delete;
  HttpTransfers& operator=(const HttpTransfers&) = delete;

  // Sends a request with the next run(). REQUIRES: `handler` lives until its on_end(), or until
  // this object is destroyed.
  void start(TransferRequest request, TransferHandler& handler);
  // Sends and receives what it can, after waiting up to `seconds` for something to do, and calls
  // the handlers. Returns early if there was something to do, on wake() and on a signal.
  void run(double seconds);
  // Ends a transfer without another call to its handler. REQUIRES: no handler is being called.
  void abandon(const TransferHandler& handler);
  // From any thread: makes run() return.
  void wake();

 private:
  class Implementation;
  explicit HttpTransfers(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

struct WholeResponse {
  TransferHead head;  // status 0 if none came
  std::string body;   // at most 16 MiB
  TransferEnd end;
};
// Sends a request and waits for its whole response, as long as `go_on`, which is asked ten times
// per second, returns true. Empty: without asking.
WholeResponse fetch(HttpTransfers& transfers, TransferRequest request,
                    const std::function<bool()>& go_on = {});

}  // namespace hearth
