// Remembers, during one call, the words of a text and where their ids are in the output, so that a
// repeated word is a copy. Does not allocate per word.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace hearth {

class WordCache {
 public:
  // Sized for a text of `text_bytes`.
  explicit WordCache(std::size_t text_bytes)
      : slots_(std::bit_ceil(std::clamp<std::size_t>(text_bytes / 16, 1, kMaxSlots))) {}

  // Appends the word's ids to `ids`: a copy if the word is known, otherwise by `encode(word)`,
  // which must append them to `ids` and do nothing else. The words' memory must stay valid.
  template <class Encode>
  void append(std::string_view word, std::vector<std::uint32_t>& ids, const Encode& encode) {
    Slot& slot = slots_[std::hash<std::string_view>{}(word) & (slots_.size() - 1)];
    if (slot.word.data() != nullptr && slot.word == word) {
      for (std::uint32_t i = 0; i < slot.count; ++i) {
        const std::uint32_t id = ids[slot.first + i];
        ids.push_back(id);
      }
      return;
    }
    const std::size_t first = ids.size();
    encode(word);
    slot = {word, first, static_cast<std::uint32_t>(ids.size() - first)};
  }

 private:
  static constexpr std::size_t kMaxSlots = 16384;
  struct Slot {
    std::string_view word;
    std::size_t first = 0;  // in ids
    std::uint32_t count = 0;
  };
  std::vector<Slot> slots_;
};

}  // namespace hearth
