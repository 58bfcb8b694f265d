#include "engine/decoding/speculation/lookahead.h"

#include <algorithm>

namespace hearth {
namespace {

// Adds a child of `parent`, or finds it. Returns kNoParent if there is no room for it.
std::uint32_t add_to_tree(Proposal& tree, std::uint32_t token, std::uint32_t parent,
                          std::uint32_t most) {
  if (const std::uint32_t found = tree.find(token, parent); found != kNoParent) return found;
  return tree.size() < most ? tree.add(token, parent) : kNoParent;
}

}  // namespace

Lookahead::Lookahead(std::span<const std::uint32_t> prompt) {
  std::size_t place = 0;
  for (auto& level : window_)
    for (std::uint32_t& token : level)
      if (!prompt.empty()) token = prompt[place++ * 7 % prompt.size()];
  append(prompt);
}

void Lookahead::append(std::span<const std::uint32_t> tokens) {
  for (const std::uint32_t token : tokens) {
    std::shift_left(last_.begin(), last_.end(), 1);
    last_.back() = token;
    if (++tokens_ < last_.size()) continue;
    Gram gram;
    std::copy(last_.begin() + 1, last_.end(), gram.begin());
    remember(last_.front(), gram);
  }
}

void Lookahead::remember(std::uint32_t token, const Gram& gram) {
  if (pool_.size() >= kMaxKeys && !pool_.contains(token)) return;
  Grams& grams = pool_[token];
  const auto end = grams.grams.begin() + static_cast<std::ptrdiff_t>(grams.count);
  if (std::find(grams.grams.begin(), end, gram) != end) return;
  grams.grams[grams.next] = gram;
  grams.next = (grams.next + 1) % kGrams;
  grams.count = std::min(grams.count + 1, kGrams);
}

// The newest first.
void Lookahead::propose_grams(std::uint32_t most, Proposal& proposal) const {
  const auto place = tokens_ > 0 ? pool_.find(last_.back()) : pool_.end();
  if (place == pool_.end()) return;
  const Grams& grams = place->second;
  for (std::size_t i = 0; i < grams.count; ++i) {
    std::uint32_t parent = kNoParent;
    for (const std::uint32_t token : grams.grams[(grams.next + 2 * kGrams - 1 - i) % kGrams]) {
      parent = add_to_tree(proposal, token, parent, most);
      if (parent == kNoParent) break;
    }
  }
}

void Lookahead::propose(std::uint32_t most, Proposal& proposal) {
  top_.fill(kNoParent);
  propose_grams(most, proposal);
  std::uint32_t before = kNoParent;
  for (std::size_t column = 0; column < kColumns; ++column) {
    before = add_to_tree(proposal, window_[0][column], before, most);
    std::uint32_t top = before;
    for (std::size_t level = 1; level < kLevels && top != kNoParent; ++level)
      top = add_to_tree(proposal, window_[level][column], top, most);
    top_[column] = top;
    if (before == kNoParent) break;
  }
}

void Lookahead::observe(std::span<const std::uint32_t> sampled) {
  for (std::size_t column = 0; column < kColumns; ++column) {
    if (top_[column] == kNoParent || top_[column] + 1 >= sampled.size()) continue;
    const std::uint32_t newest = sampled[top_[column] + 1];
    Gram gram;
    for (std::size_t level = 1; level < kLevels; ++level) gram[level - 1] = window_[level][column];
    gram.back() = newest;
    remember(window_[0][column], gram);
    for (std::size_t level = 1; level < kLevels; ++level)
      window_[level - 1][column] = window_[level][column];
    window_[kLevels - 1][column] = newest;
  }
  top_.fill(kNoParent);
}

}  // namespace hearth
