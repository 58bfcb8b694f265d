#include "engine/token_stream.h"

#include <algorithm>
#include <utility>

namespace hearth {

TokenStream::TokenStream(RequestId request, uint32_t room) : request_(request) {
  constexpr uint32_t kMaxRoom = 512;  // readers are seldom further behind, and requests may be many
  ring_.resize(std::clamp(room, 1u, kMaxRoom));
}

bool TokenStream::take(std::optional<GeneratedToken>& token) {
  if (tokens_ == 0) return closed_;
  token = std::move(ring_[first_]);
  first_ = (first_ + 1) % ring_.size();
  --tokens_;
  return true;
}

std::optional<GeneratedToken> TokenStream::next() {
  std::unique_lock lock(mutex_);
  std::optional<GeneratedToken> token;
  arrived_.wait(lock, [&] { return take(token); });
  return token;
}

std::optional<GeneratedToken> TokenStream::next(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  std::optional<GeneratedToken> token;
  arrived_.wait_for(lock, limit, [&] { return take(token); });
  return token;
}

bool TokenStream::ended() const {
  const std::lock_guard lock(mutex_);
  return closed_ && tokens_ == 0;
}

void TokenStream::set_notify(std::function<void()> notify) {
  const std::lock_guard lock(mutex_);
  notify_ = std::move(notify);
  if (notify_ && (tokens_ > 0 || closed_)) notify_();
}

void TokenStream::push(GeneratedToken token) {
  const std::lock_guard lock(mutex_);
  if (tokens_ == ring_.size()) {
    // The reader is slow: double the room.
    std::vector<GeneratedToken> larger(ring_.size() * 2);
    for (size_t i = 0; i < tokens_; ++i) larger[i] = std::move(ring_[(first_ + i) % ring_.size()]);
    ring_ = std::move(larger);
    first_ = 0;
  }
  ring_[(first_ + tokens_) % ring_.size()] = std::move(token);
  ++tokens_;
  arrived_.notify_all();
  if (notify_) notify_();
}

void TokenStream::close(GenerationEnd end) {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  end_ = std::move(end);
  arrived_.notify_all();
  if (notify_) notify_();
}

}  // namespace hearth
