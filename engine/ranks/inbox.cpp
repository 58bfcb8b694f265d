#include "engine/ranks/inbox.h"

#include <utility>

namespace hearth {

void Inbox::put(uint32_t from, Channel channel, Message message) {
  Queue& place = queue(from, channel);
  {
    const std::lock_guard lock(mutex_);
    place.messages.push_back(std::move(message));
  }
  place.arrived.notify_one();
}

Result<Message> Inbox::take(uint32_t from, Channel channel) {
  Queue& place = queue(from, channel);
  std::unique_lock lock(mutex_);
  const std::optional<Error>& ended = ended_[from];
  place.arrived.wait(lock, [&] { return error_ || ended || !place.messages.empty(); });
  if (place.messages.empty()) return error_ ? *error_ : *ended;
  Message message = std::move(place.messages.front());
  place.messages.pop_front();
  return message;
}

bool Inbox::has(uint32_t from, Channel channel) {
  const std::lock_guard lock(mutex_);
  return error_ || ended_[from] || !queue(from, channel).messages.empty();
}

void Inbox::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (error_) return;
  error_ = error;
  for (Queue& place : queues_) place.arrived.notify_all();
}

void Inbox::end(uint32_t from, const Error& error) {
  const std::lock_guard lock(mutex_);
  ended_[from] = error;
  for (size_t channel = 0; channel < kChannels; ++channel)
    queue(from, static_cast<Channel>(channel)).arrived.notify_all();
}

std::optional<Error> Inbox::error() {
  const std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace hearth
