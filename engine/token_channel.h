// The tokens of one request, on their way from the engine thread to the reader. The request and the
// reader's TokenStream share it. The engine never waits for the reader: the channel grows.
//
// Thread-safe, with one reader. Callbacks run without the lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/generation.h"

namespace hearth {

class TokenChannel {
 public:
  // Reserves room for `room` tokens, so that delivering them does not allocate.
  TokenChannel(RequestId request, uint32_t room);
  TokenChannel(const TokenChannel&) = delete;
  TokenChannel& operator=(const TokenChannel&) = delete;

  RequestId request() const { return request_; }

  // The engine thread. Nothing follows close().
  void push(GeneratedToken token);
  // Before the first push().
  void set_prompt_logprobs(std::vector<PromptLogprob> logprobs) { prompt_ = std::move(logprobs); }
  void close(GenerationEnd end);
  bool closed() const;

  // The reader; token_stream.h describes these.
  std::optional<GeneratedToken> next();
  std::optional<GeneratedToken> next(std::chrono::nanoseconds limit);
  bool ended() const;
  const GenerationEnd& end() const { return end_; }  // REQUIRES: ended()
  void set_notify(std::function<void()> notify);
  // REQUIRES: a token was taken, or ended().
  const std::vector<PromptLogprob>& prompt_logprobs() const { return prompt_; }

 private:
  // Shared, so that a callback can be replaced while it runs.
  using Notify = std::shared_ptr<const std::function<void()>>;

  // Both REQUIRE that mutex_ is held.
  bool take(std::optional<GeneratedToken>& token);
  void grow();

  void wake_reader(const Notify& notify);

  const RequestId request_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<GeneratedToken> ring_;  // holds tokens_ tokens, starting at first_
  size_t first_ = 0, tokens_ = 0;
  bool closed_ = false;
  GenerationEnd end_;
  std::vector<PromptLogprob> prompt_;
  Notify notify_;  // null: none
};

}  // namespace hearth
