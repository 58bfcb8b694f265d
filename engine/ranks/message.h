// Writes values and lists into a message, and reads them back in the same order. Both ends run the
// same program on the same kind of machine, so values are copied as they are in memory.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/ranks/link.h"
#include "runtime/result.h"

namespace hearth {

class MessageWriter {
 public:
  MessageWriter() = default;
  // Writes over a message, whose memory it uses.
  explicit MessageWriter(Message over) : message_(std::move(over)) { message_.clear(); }

  template <class T>
  requires std::is_trivially_copyable_v<T> MessageWriter& value(const T& value) {
    append(&value, sizeof(T));
    return *this;
  }
  // The number of items, then the items.
  template <class T>
  requires std::is_trivially_copyable_v<T> MessageWriter& list(std::span<const T> items) {
    value(static_cast<uint64_t>(items.size()));
    append(items.data(), items.size_bytes());
    return *this;
  }
  template <class T>
  MessageWriter& list(const std::vector<T>& items) {
    return list(std::span<const T>(items));
  }
  MessageWriter& text(std::string_view text) { return list(std::span<const char>(text)); }

  // Room for a large list, so that what comes before it is not copied again.
  MessageWriter& reserve(size_t bytes) {
    message_.reserve(bytes);
    return *this;
  }
  Message take() { return std::move(message_); }

 private:
  void append(const void* bytes, size_t count) {
    const auto* const begin = static_cast<const std::byte*>(bytes);
    message_.insert(message_.end(), begin, begin + count);
  }

  Message message_;
};

// Check status() after reading: what a message that is too short does not have reads as zero.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> message) : left_(message) {}

  template <class T>
  requires std::is_trivially_copyable_v<T> MessageReader& value(T& value) {
    value = T{};
    if (const std::byte* bytes = take(sizeof(T))) std::memcpy(&value, bytes, sizeof(T));
    return *this;
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> MessageReader& list(std::vector<T>& items) {
    const uint64_t count = list_size(sizeof(T));
    items.resize(count);
    if (const std::byte* bytes = take(count * sizeof(T)); bytes != nullptr && count > 0)
      std::memcpy(items.data(), bytes, count * sizeof(T));
    return *this;
  }
  // The same without a copy: valid as long as the message. REQUIRES: what comes before it in the
  // message has a multiple of alignof(T) bytes.
  template <class T>
  MessageReader& view(std::span<const T>& items) {
    const uint64_t count = list_size(sizeof(T));
    const std::byte* bytes = take(count * sizeof(T));
    assert(reinterpret_cast<uintptr_t>(bytes) % alignof(T) == 0);
    items = {reinterpret_cast<const T*>(bytes), bytes == nullptr ? 0 : count};
    return *this;
  }
  MessageReader& text(std::string& text) {
    const uint64_t count = list_size(1);
    if (const std::byte* bytes = take(count))
      text.assign(reinterpret_cast<const char*>(bytes), count);
    return *this;
  }

  Status status() const {
    if (!short_ && left_.empty()) return {};
    return Error{ErrorKind::kInternal, "a message between ranks has the wrong length"};
  }

 private:
  uint64_t list_size(size_t item_bytes) {
    uint64_t count = 0;
    value(count);
    if (count <= left_.size() / item_bytes) return count;
    short_ = true;
    return 0;
  }
  const std::byte* take(size_t bytes) {
    if (bytes > left_.size()) short_ = true;
    if (short_) return nullptr;
    const std::byte* begin = left_.data();
    left_ = left_.subspan(bytes);
    return begin;
  }

  std::span<const std::byte> left_;
  bool short_ = false;
};

}  // namespace hearth
