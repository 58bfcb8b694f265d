#include "engine/decoding/speculation/ngram.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace hearth {

NgramProposer::NgramProposer(std::uint32_t max_tokens, const Options& options)
    : options_(options), heads_(std::bit_ceil(std::max(max_tokens, 16u)), kNone) {
  assert(options.min_match >= 1 && options.max_match >= options.min_match);
  tokens_.reserve(max_tokens);
  previous_.reserve(max_tokens);
}

// Of the min_match tokens before position `end`.
std::size_t NgramProposer::bucket(std::uint32_t end) const {
  std::uint64_t hash = 0;
  for (std::uint32_t i = end - options_.min_match; i < end; ++i)
    hash = (hash ^ tokens_[i]) * 0x9e3779b97f4a7c15;
  return (hash >> 32) & (heads_.size() - 1);
}

void NgramProposer::append(std::span<const std::uint32_t> tokens) {
  for (const std::uint32_t token : tokens) {
    tokens_.push_back(token);
    std::uint32_t before = kNone;
    if (size() >= options_.min_match) before = std::exchange(heads_[bucket(size())], size());
    previous_.push_back(before);
  }
}

// How many tokens before positions `a` and `b` are equal.
std::uint32_t NgramProposer::match_length(std::uint32_t a, std::uint32_t b) const {
  std::uint32_t length = 0;
  while (length < options_.max_match && length < std::min(a, b) &&
         tokens_[a - 1 - length] == tokens_[b - 1 - length])
    ++length;
  return length;
}

NgramProposer::Match NgramProposer::best_match() const {
  Match best;
  if (size() < options_.min_match) return best;
  std::uint32_t place = previous_.back();
  for (std::uint32_t i = 0; i < kMaxCandidates && place != kNone; ++i) {
    // Places with the same hash may have different tokens.
    const std::uint32_t length = match_length(place, size());
    if (length >= options_.min_match && length > best.length) best = {place, length};
    place = previous_[place - 1];
  }
  return best;
}

std::uint32_t NgramProposer::propose(std::uint32_t most,
                                     std::vector<std::uint32_t>& proposed) const {
  const Match match = best_match();
  if (match.length == 0) return 0;
  // Text that repeats with a short period goes on past its own end.
  for (std::uint32_t i = 0, from = match.place; i < most; ++i, ++from) {
    if (from == size()) from = match.place;
    proposed.push_back(tokens_[from]);
  }
  return match.length;
}

void NgramProposer::propose_tree(std::uint32_t length, std::uint32_t most,
                                 Proposal& proposal) const {
  const Match best = best_match();
  if (best.length == 0) return;
  const auto add_branch = [&](std::uint32_t place, std::uint32_t tokens) {
    std::uint32_t parent = kNoParent;
    for (std::uint32_t i = 0, from = place; i < tokens; ++i, ++from) {
      if (from == size()) from = place;
      std::uint32_t child = proposal.find(tokens_[from], parent);
      if (child == kNoParent) {
        if (proposal.size() == most) return;
        child = proposal.add(tokens_[from], parent);
      }
      parent = child;
    }
  };
  add_branch(best.place, length);
  // The latest places first.
  std::uint32_t place = previous_.back();
  for (std::uint32_t i = 0; i < kMaxCandidates && place != kNone; ++i) {
    if (match_length(place, size()) >= options_.min_match)
      add_branch(place, std::max(1u, length / 2));
    place = previous_[place - 1];
  }
  proposal.simplify();
}

void NgramProposer::repeat(std::uint32_t count, std::vector<std::uint32_t>& proposed) const {
  for (std::uint32_t i = 0; i < count && !tokens_.empty(); ++i)
    proposed.push_back(tokens_[i % tokens_.size()]);
}

}  // namespace hearth
