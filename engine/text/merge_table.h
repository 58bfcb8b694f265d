// Which two neighbouring tokens merge into one, and in which order: the core of both kinds of
// tokenizers. Immutable after it is filled; any thread may use it.
#pragma once

#include <cstdint>
#include <vector>

namespace hearth {

// A symbol that is not a token; it never merges.
inline constexpr std::uint32_t kNoToken = 0xFFFFFFFF;

class MergeTable {
 public:
  explicit MergeTable(std::size_t pairs = 0);

  // Lower ranks merge first. If a pair is added twice, its first rank counts. REQUIRES: rank is not
  // kNever; at most `pairs` calls.
  void add(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t merged);

  // Merges neighbours in `symbols`, lowest rank first and leftmost among equals, until none can
  // merge. If `widths` is given, the widths of merged symbols are added up. Takes at most n log n
  // time.
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
