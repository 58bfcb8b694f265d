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
  place.arrived.wait(lock, [&] { return error_ || !place.messages.empty(); });
  if (place.messages.empty()) return *error_;
  Message message = std::move(place.messages.front());
  place.messages.pop_front();
  return message;
}

bool Inbox::has(uint32_t from, Channel channel) {
  const std::lock_guard lock(mutex_);
  return error_ || !queue(from, channel).messages.empty();
}

void Inbox::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (error_) return;
  error_ = error;
  for (Queue& place : queues_) place.arrived.notify_all();
}

std::optional<Error> Inbox::error() {
  const std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace hearth
