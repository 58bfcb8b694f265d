// Host memory for the hidden rows between two ranks of one process. The device that computes them
// and the one that continues with them both import it, so that no rows are copied in between. A
// step uses one of two places in turn; who computes rows must know that the next rank has read
// those of the step before last (engine/ranks/rank_loop).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "runtime/rounding.h"

namespace hearth {

class SharedRows {
 public:
  static constexpr size_t kPlaces = 2;
  // Address and size of a place are multiples of it, which is enough for all drivers we know.
  static constexpr size_t kAlignment = 65536;

  // Null if there is no memory.
  static std::unique_ptr<SharedRows> allocate(size_t bytes) {
    std::unique_ptr<SharedRows> rows(new SharedRows);
    rows->bytes_ = round_up(bytes, kAlignment);
    for (Memory& place : rows->places_) {
      place.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rows->bytes_)));
      if (place == nullptr) return nullptr;
      // Rows of padding are copied, too, and must be numbers.
      std::memset(place.get(), 0, rows->bytes_);
    }
    return rows;
  }

  std::span<std::byte> place(size_t index) const { return {places_[index].get(), bytes_}; }
  // The first `floats` of a place. REQUIRES: they fit.
  std::span<const float> rows(size_t index, size_t floats) const {
    return {reinterpret_cast<const float*>(places_[index].get()), floats};
  }
  // The place that these rows begin at, if they are in one.
  std::optional<uint32_t> place_of(std::span<const float> rows) const {
    for (uint32_t i = 0; i < kPlaces; ++i)
      if (!rows.empty() && static_cast<const void*>(rows.data()) == places_[i].get()) return i;
    return std::nullopt;
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  SharedRows() = default;

  size_t bytes_ = 0;
  std::array<Memory, kPlaces> places_;
};

// The rows before and after the layers of a rank; null: they are sent as messages.
struct RankRows {
  SharedRows* entering = nullptr;
  SharedRows* leaving = nullptr;
};

// Between the ranks of one process: the first is between ranks 0 and 1.
using SharedRowsList = std::vector<std::unique_ptr<SharedRows>>;

inline RankRows rows_of_rank(const SharedRowsList& list, uint32_t rank) {
  return {.entering = rank > 0 && rank <= list.size() ? list[rank - 1].get() : nullptr,
          .leaving = rank < list.size() ? list[rank].get() : nullptr};
}

}  // namespace hearth
