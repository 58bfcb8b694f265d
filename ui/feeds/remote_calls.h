// Requests to the server that the dashboard watches, any number at a time, on a thread of their
// own. Nothing here blocks the window. Call only from the window's thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/result.h"
#include "tools/http/http_transfers.h"

namespace hearth {

// One open request. Dropping it does not end it; cancel() does.
class RemoteCall {
 public:
  RemoteCall(std::string path, std::string body, std::weak_ptr<HttpTransfers> waker)
      : path_(std::move(path)), body_(std::move(body)), waker_(std::move(waker)) {}

  // The data of events that have arrived since the last call, if the reply is a stream of them.
  std::vector<std::string> take_events();
  bool ended() const;
  // Why it failed, in one line; empty if it did not, or has not ended.
  std::string failure() const;
  // Ends the transfer, which tells the server that nobody waits for the reply.
  void cancel();

 private:
  friend class RemoteCalls;
  class Transfer;

  const std::string path_, body_;
  const std::weak_ptr<HttpTransfers> waker_;
  mutable std::mutex mutex_;
  std::vector<std::string> events_;
  std::string failure_;
  bool ended_ = false, cancelled_ = false;
};

class RemoteCalls {
 public:
  // Fails if `url` is not a valid address, the key cannot be sent, or this build has no libcurl.
  static Result<std::unique_ptr<RemoteCalls>> create(const std::string& url,
                                                     const std::string& api_key);
  // Ends open requests.
  ~RemoteCalls();
  RemoteCalls(const RemoteCalls&) = delete;
  RemoteCalls& operator=(const RemoteCalls&) = delete;

  // `body` is JSON.
  std::shared_ptr<RemoteCall> post(std::string path, std::string body);

 private:
  RemoteCalls(ServerUrl server, std::string api_key, std::unique_ptr<HttpTransfers> transfers);
  void loop();

  const ServerUrl server_;
  const std::string api_key_;
  const std::shared_ptr<HttpTransfers> transfers_;  // of thread_, which others only wake
  std::mutex mutex_;
  bool stop_ = false;
  std::vector<std::shared_ptr<RemoteCall>> queued_;
  std::thread thread_;
};

}  // namespace hearth
