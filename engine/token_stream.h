// The reader's end of a request: what Engine::submit() returns. Dropping it before the request has
// ended cancels the request at once, because its output has no reader. It may outlive the
// engine, which ends every request before it is destroyed.
//
// For one thread at a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/generation.h"

namespace hearth {

class Mailbox;
class TokenChannel;

class [[nodiscard]] TokenStream {
 public:
  // For the engine: `mailbox` takes the cancellation.
  TokenStream(std::shared_ptr<TokenChannel> channel, std::weak_ptr<Mailbox> mailbox);
  ~TokenStream();
  // Of a stream that was moved from, only destruction and assignment are allowed.
  TokenStream(TokenStream&&) noexcept;
  TokenStream& operator=(TokenStream&&) noexcept;

  RequestId request() const;

  // Blocks until there is a token and returns it; empty at the end of the stream.
  std::optional<GeneratedToken> next();
  // The same, but returns empty after `limit`; ended() tells the two cases apart.
  std::optional<GeneratedToken> next(std::chrono::nanoseconds limit);
  // Whether the request has ended and every token has been taken.
  bool ended() const;
  // How the request ended. Valid while the stream exists. REQUIRES: ended().
  const GenerationEnd& end() const;

  // What the model expected at each prompt token but the first, if the request asked for it and did
  // not end before its prompt was computed. Valid while the stream exists. REQUIRES: next() has
  // returned a token, or ended().
  const std::vector<PromptLogprob>& prompt_logprobs() const;

  // Calls `notify` on the engine thread after every token and at the end; null stops that. It must
  // be brief, because it delays the engine: it should only wake up another thread. No lock is held
  // while it runs. A call that has begun may still be running when this returns or when the stream
  // is dropped, so it must own what it uses. If there is something to read already, it is called
  // immediately, on this thread.
  void set_notify(std::function<void()> notify);

 private:
  void release();

  std::shared_ptr<TokenChannel> channel_;
  std::weak_ptr<Mailbox> mailbox_;
};

}  // namespace hearth
