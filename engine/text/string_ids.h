// A fast map from strings to ids, by open addressing over views; the strings must outlive it. Any
// thread may read.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace hearth {

class StringIds {
 public:
  // Room for `count` strings.
  explicit StringIds(std::size_t count = 0)
      : slots_(std::bit_ceil(count * 2 + 2)), mask_(slots_.size() - 1) {}

  // Returns false and changes nothing if the string is present. REQUIRES: at most `count` strings.
  bool insert(std::string_view text, std::uint32_t id) {
    const std::size_t hash = std::hash<std::string_view>{}(text);
    std::size_t at = hash & mask_;
    for (; slots_[at].used; at = (at + 1) & mask_)
      if (slots_[at].text == text) return false;
    slots_[at] = {text, id, static_cast<std::uint16_t>(hash >> 48), true};
    return true;
  }

  std::optional<std::uint32_t> find(std::string_view text) const {
    const std::size_t hash = std::hash<std::string_view>{}(text);
    const auto tag = static_cast<std::uint16_t>(hash >> 48);
    for (std::size_t at = hash & mask_; slots_[at].used; at = (at + 1) & mask_)
      if (slots_[at].tag == tag && slots_[at].text == text) return slots_[at].id;
    return std::nullopt;
  }

 private:
  struct Slot {
    std::string_view text;
    std::uint32_t id = 0;
    std::uint16_t tag = 0;
    bool used = false;
  };
  std::vector<Slot> slots_;
  std::size_t mask_;
};

}  // namespace hearth
