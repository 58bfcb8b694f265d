// The tokens of one request on their way from the engine thread to whoever asked. The engine never
// waits for the reader. Who lets go of the last pointer to it before the end cancels the request.
// Thread-safe; one reader.
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
  // `room`: tokens that are expected, so that delivering them allocates nothing.
  TokenStream(RequestId request, uint32_t room);
  TokenStream(const TokenStream&) = delete;
  TokenStream& operator=(const TokenStream&) = delete;

  RequestId request() const { return request_; }

  // The next token; nothing at the end of the stream. Blocks.
  std::optional<GeneratedToken> next();
  // The same, but gives up after `limit`: look at ended() to know why there was nothing.
  std::optional<GeneratedToken> next(std::chrono::nanoseconds limit);
  // The end has come and every token has been taken.
  bool ended() const;
  // How it ended. REQUIRES: ended().
  const GenerationEnd& end() const { return end_; }

  // Calls `notify` after every token and at the end, on the engine thread: it must only wake
  // somebody up, and must not hold a pointer to the stream. What is there already is told at once.
  void set_notify(std::function<void()> notify);

  // For the engine.
  void push(GeneratedToken token);
  void close(GenerationEnd end);

 private:
  bool take(std::optional<GeneratedToken>& token);

  const RequestId request_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<GeneratedToken> ring_;  // tokens_ of them from first_ on
  size_t first_ = 0, tokens_ = 0;
  bool closed_ = false;
  GenerationEnd end_;
  std::function<void()> notify_;
};

}  // namespace hearth
