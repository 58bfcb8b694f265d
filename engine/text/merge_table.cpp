#include "engine/text/merge_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

namespace hearth {
namespace {

// Up to this length, searching all pairs for the best one is faster than keeping a heap.
constexpr std::size_t kShort = 48;

}  // namespace

MergeTable::MergeTable(std::size_t pairs) {
  const std::size_t slots = std::bit_ceil(pairs + pairs / 2 + 2);
  slots_.resize(slots);
  shift_ = 64u - static_cast<unsigned>(std::countr_zero(slots));
}

std::size_t MergeTable::slot_of(std::uint32_t left, std::uint32_t right) const {
  const std::uint64_t key = (std::uint64_t{left} << 32) | right;
  return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
}

void MergeTable::add(std::uint32_t left, std::uint32_t right, std::uint32_t rank,
                     std::uint32_t merged) {
  std::size_t at = slot_of(left, right);
  for (; slots_[at].rank != kNever; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].left == left && slots_[at].right == right) return;
  slots_[at] = {left, right, rank, merged};
}

// Returns an empty slot, whose rank is kNever, if the two do not merge.
const MergeTable::Slot& MergeTable::find(std::uint32_t left, std::uint32_t right) const {
  std::size_t at = slot_of(left, right);
  while (slots_[at].rank != kNever && (slots_[at].left != left || slots_[at].right != right))
    at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

void MergeTable::merge(std::vector<std::uint32_t>& symbols,
                       std::vector<std::uint32_t>* widths) const {
  if (symbols.size() < 2) return;
  if (symbols.size() <= kShort)
    merge_short(symbols, widths);
  else
    merge_long(symbols, widths);
}

void MergeTable::merge_short(std::vector<std::uint32_t>& symbols,
                             std::vector<std::uint32_t>* widths) const {
  std::array<const Slot*, kShort> pairs;  // pairs[i] is symbols i and i + 1
  std::size_t count = symbols.size() - 1;
  for (std::size_t i = 0; i < count; ++i) pairs[i] = &find(symbols[i], symbols[i + 1]);
  while (count > 0) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < count; ++i)
      if (pairs[i]->rank < pairs[best]->rank) best = i;
    if (pairs[best]->rank == kNever) break;
    symbols[best] = pairs[best]->merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    if (widths) {
      (*widths)[best] += (*widths)[best + 1];
      widths->erase(widths->begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    std::copy(pairs.begin() + best + 1, pairs.begin() + count, pairs.begin() + best);
    --count;
    if (best > 0) pairs[best - 1] = &find(symbols[best - 1], symbols[best]);
    if (best < count) pairs[best] = &find(symbols[best], symbols[best + 1]);
  }
}

// Keeps the symbols as a doubly linked list over their first positions. A pair belongs to its left
// symbol; a heap entry is stale if that symbol's pair now has another rank.
void MergeTable::merge_long(std::vector<std::uint32_t>& symbols,
                            std::vector<std::uint32_t>* widths) const {
  const auto count = static_cast<std::uint32_t>(symbols.size());
  std::vector<std::uint32_t> next(count), previous(count), ranks(count, kNever);
  std::vector<std::uint64_t> heap;  // rank, then position: lowest rank first, leftmost among equals
  heap.reserve(count);
  const auto entry = [&](std::uint32_t at) { return (std::uint64_t{ranks[at]} << 32) | at; };
  for (std::uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;
    if (i + 1 < count) ranks[i] = find(symbols[i], symbols[i + 1]).rank;
    if (ranks[i] != kNever) heap.push_back(entry(i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto refresh = [&](std::uint32_t at) {
    ranks[at] = next[at] < count ? find(symbols[at], symbols[next[at]]).rank : kNever;
    if (ranks[at] == kNever) return;
    heap.push_back(entry(at));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const std::uint64_t top = heap.back();
    heap.pop_back();
    const auto at = static_cast<std::uint32_t>(top);
    if (ranks[at] != static_cast<std::uint32_t>(top >> 32)) continue;
    const std::uint32_t gone = next[at];
    symbols[at] = find(symbols[at], symbols[gone]).merged;
    if (widths) (*widths)[at] += (*widths)[gone];
    ranks[gone] = kNever;
    next[at] = next[gone];
    if (next[at] < count) previous[next[at]] = at;
    refresh(at);
    if (previous[at] < count) refresh(previous[at]);
  }
  std::uint32_t kept = 0;
  for (std::uint32_t at = 0; at < count; at = next[at], ++kept) {
    symbols[kept] = symbols[at];
    if (widths) (*widths)[kept] = (*widths)[at];
  }
  symbols.resize(kept);
  if (widths) widths->resize(kept);
}

}  // namespace hearth
