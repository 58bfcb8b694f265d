// The tokens of one request, on their way from the engine thread to the caller. The engine never
// waits for the reader: the stream grows. Releasing the caller's last pointer before the end
// cancels the request. Thread-safe; one reader.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/generation.h"

namespace hearth {

class TokenStream {
 public:
  // Reserves room for `room` tokens, so that delivering them does not allocate.
  TokenStream(RequestId request, uint32_t room);
  TokenStream(const TokenStream&) = delete;
  TokenStream& operator=(const TokenStream&) = delete;

  RequestId request() const { return request_; }

  // Blocks until there is a token and returns it; empty at the end of the stream.
  std::optional<GeneratedToken> next();
  // The same, but returns empty after `limit`; ended() tells the two cases apart.
  std::optional<GeneratedToken> next(std::chrono::nanoseconds limit);
  // Whether the request has ended and every token has been taken.
  bool ended() const;
  // How the request ended. REQUIRES: ended().
  const GenerationEnd& end() const { return end_; }

  // Calls `notify` on the engine thread after every token and at the end. It may only wake up
  // another thread, and must not hold a pointer to the stream. If there is something to read
  // already, it is called immediately.
  void set_notify(std::function<void()> notify);

  // For the engine.
  void push(GeneratedToken token);
  void close(GenerationEnd end);

 private:
  bool take(std::optional<GeneratedToken>& token);

  const RequestId request_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<GeneratedToken> ring_;  // holds tokens_ tokens, starting at first_
  size_t first_ = 0, tokens_ = 0;
  bool closed_ = false;
  GenerationEnd end_;
  std::function<void()> notify_;
};

}  // namespace hearth
