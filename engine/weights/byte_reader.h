// Reads bytes from front to back, never past their end. Numbers are little endian and need not be
// aligned. An error names the byte and what was to be read there.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "engine/weights/cut_off.h"
#include "runtime/result.h"

namespace hearth {

static_assert(std::endian::native == std::endian::little,
              "numbers are read without swapping bytes");

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t offset() const { return offset_; }
  std::uint64_t remaining() const { return bytes_.size() - offset_; }

  // `what` is for the error message, such as "the tensor count".
  Result<std::span<const std::byte>> take(std::uint64_t count, std::string_view what) {
    if (count > remaining()) return ends_within(count, what);
    const auto taken = bytes_.subspan(offset_, count);
    offset_ += count;
    return taken;
  }

  template <class T>
  Result<T> number(std::string_view what) {
    HEARTH_ASSIGN(const auto bytes, take(sizeof(T), what));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  Error error_here(std::string message) const {
    return {ErrorKind::kInvalid, "byte " + std::to_string(offset_) + ": " + std::move(message)};
  }
  // For something that takes `needed` bytes or more, which are not left.
  Error error_cut_off(std::string message, std::uint64_t needed) const {
    const std::string hint = cut_off_message(needed - remaining(), true);
    return error_here(hint.empty() ? std::move(message) : std::move(message) + ": " + hint);
  }

 private:
  Error ends_within(std::uint64_t count, std::string_view what) const {
    return error_cut_off(std::string(what) + " takes " + std::to_string(count) +
                             " bytes, but only " + std::to_string(remaining()) + " are left",
                         count);
  }

  std::span<const std::byte> bytes_;
  std::uint64_t offset_ = 0;
};

}  // namespace hearth
