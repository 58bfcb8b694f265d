#include "engine/token_channel.h"

#include <algorithm>
#include <utility>

namespace hearth {

TokenChannel::TokenChannel(RequestId request, uint32_t room) : request_(request) {
  constexpr uint32_t kMaxRoom = 512;  // readers are rarely further behind; requests may be many
  ring_.resize(std::clamp(room, 1u, kMaxRoom));
}

bool TokenChannel::take(std::optional<GeneratedToken>& token) {
  if (tokens_ == 0) return closed_;
  token = std::move(ring_[first_]);
  first_ = (first_ + 1) % ring_.size();
  --tokens_;
  return true;
}

std::optional<GeneratedToken> TokenChannel::next() {
  std::unique_lock lock(mutex_);
  std::optional<GeneratedToken> token;
  arrived_.wait(lock, [&] { return take(token); });
  return token;
}

std::optional<GeneratedToken> TokenChannel::next(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  std::optional<GeneratedToken> token;
  arrived_.wait_for(lock, limit, [&] { return take(token); });
  return token;
}

bool TokenChannel::ended() const {
  const std::lock_guard lock(mutex_);
  return closed_ && tokens_ == 0;
}

bool TokenChannel::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

void TokenChannel::set_notify(std::function<void()> notify) {
  Notify next;
  if (notify) next = std::make_shared<const std::function<void()>>(std::move(notify));
  Notify replaced = next;  // destroyed without the lock: it may own anything
  bool waiting = false;
  {
    const std::lock_guard lock(mutex_);
    std::swap(replaced, notify_);
    waiting = tokens_ > 0 || closed_;
  }
  if (next && waiting) (*next)();
}

// The reader is slow: doubles the room.
void TokenChannel::grow() {
  std::vector<GeneratedToken> larger(ring_.size() * 2);
  for (size_t i = 0; i < tokens_; ++i) larger[i] = std::move(ring_[(first_ + i) % ring_.size()]);
  ring_ = std::move(larger);
  first_ = 0;
}

void TokenChannel::wake_reader(const Notify& notify) {
  arrived_.notify_all();
  if (notify) (*notify)();
}

void TokenChannel::push(GeneratedToken token) {
  Notify notify;
  {
    const std::lock_guard lock(mutex_);
    if (tokens_ == ring_.size()) grow();
    ring_[(first_ + tokens_) % ring_.size()] = std::move(token);
    ++tokens_;
    notify = notify_;
  }
  wake_reader(notify);
}

void TokenChannel::close(GenerationEnd end) {
  Notify notify;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    end_ = std::move(end);
    notify = notify_;
  }
  wake_reader(notify);
}

}  // namespace hearth
