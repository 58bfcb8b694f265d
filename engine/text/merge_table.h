// Which two neighbouring tokens become one, and in what order: the heart of both kinds of
// tokenizers. Immutable after it is filled: any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace hearth {

// A symbol that no token stands for; it never merges.
inline constexpr std::uint32_t kNoToken = 0xFFFFFFFF;

class MergeTable {
 public:
  explicit MergeTable(std::size_t pairs = 0);

  // Lower ranks merge first. The first rank of a pair counts. REQUIRES: rank is not kNever, no more
  // than `pairs` of them.
  void add(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t merged);

  // Merges neighbours in `symbols`, best rank first and leftmost of equals, until none merge.
  // `widths`, where given, are added up alongside. Time is n log n at worst.
  void merge(std::vector<std::uint32_t>& symbols, std::vector<std::uint32_t>* widths) const;

  static constexpr std::uint32_t kNever = 0xFFFFFFFF;

 private:
  struct Slot {
    std::uint32_t left = kNoToken, right = kNoToken;
    std::uint32_t rank = kNever, merged = kNoToken;
  };
  std::size_t slot_of(std::uint32_t left, std::uint32_t right) const;
  const Slot& find(std::uint32_t left, std::uint32_t right) const;
  void merge_short(std::vector<std::uint32_t>& symbols, std::vector<std::uint32_t>* widths) const;
  void merge_long(std::vector<std::uint32_t>& symbols, std::vector<std::uint32_t>* widths) const;

  std::vector<Slot> slots_;
  unsigned shift_;
};

}  // namespace hearth
