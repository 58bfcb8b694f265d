#include "engine/ranks/inbox.h"

#include <chrono>
#include <thread>
#include <utility>

namespace hearth {
namespace {

using InboxClock = std::chrono::steady_clock;

}  // namespace

void Inbox::put(uint32_t from, Channel channel, Message message) {
  Queue& place = queue(from, channel);
  {
    const std::lock_guard lock(mutex_);
    place.messages.push_back(std::move(message));
    ++place.signals;
  }
  place.arrived.notify_one();
}

void Inbox::look_for(Queue& place, std::unique_lock<std::mutex>& lock) {
  const uint64_t before = place.signals;
  const InboxClock::time_point until =
      InboxClock::now() + std::chrono::duration_cast<InboxClock::duration>(place.waits.looking());
  lock.unlock();
  while (place.signals == before && InboxClock::now() < until) std::this_thread::yield();
  lock.lock();
}

Result<Message> Inbox::take(uint32_t from, Channel channel) {
  Queue& place = queue(from, channel);
  std::unique_lock lock(mutex_);
  const std::optional<Error>& ended = ended_[from];
  const auto arrived = [&] { return error_ || ended || !place.messages.empty(); };
  if (!arrived() && closely_[static_cast<size_t>(channel)]) {
    const InboxClock::time_point begin = InboxClock::now();
    if (!place.arrived.wait_for(lock, place.waits.asleep(), arrived)) look_for(place, lock);
    place.arrived.wait(lock, arrived);
    place.waits.took(InboxClock::now() - begin);
  } else {
    place.arrived.wait(lock, arrived);
  }
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
  for (Queue& place : queues_) {
    ++place.signals;
    place.arrived.notify_all();
  }
}

void Inbox::end(uint32_t from, const Error& error) {
  const std::lock_guard lock(mutex_);
  ended_[from] = error;
  for (size_t channel = 0; channel < kChannels; ++channel) {
    Queue& place = queue(from, static_cast<Channel>(channel));
    ++place.signals;
    place.arrived.notify_all();
  }
}

std::optional<Error> Inbox::error() {
  const std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace hearth
