#include "engine/decoding/speculation/shared_ngrams.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace hearth {

SharedNgrams::SharedNgrams(const Options& options)
    : options_(options),
      entries_(std::bit_ceil(std::max(options.tokens, 16u))),
      heads_(entries_.size(), 0) {
  assert(options.min_match >= 1 && options.max_match >= options.min_match);
}

std::size_t SharedNgrams::bucket(std::uint32_t owner, std::span<const std::uint32_t> tokens) const {
  std::uint64_t hash = owner;
  for (const std::uint32_t token : tokens) hash = (hash ^ token) * 0x9e3779b97f4a7c15;
  return (hash >> 32) & (heads_.size() - 1);
}

void SharedNgrams::write(std::uint32_t owner, std::uint32_t token) {
  entries_[written_ & (capacity() - 1)] = {.token = token, .owner = owner};
  ++written_;
}

void SharedNgrams::add(std::uint32_t owner, std::span<const std::uint32_t> output) {
  if (output.size() <= options_.min_match) return;  // nothing follows its first match
  output = output.last(std::min(output.size(), capacity() - 1));
  write(owner, kBreak);
  for (std::size_t i = 0; i < output.size(); ++i) {
    write(owner, output[i]);
    if (i + 1 < options_.min_match) continue;
    const auto gram = output.subspan(i + 1 - options_.min_match, options_.min_match);
    Entry& last = entries_[(written_ - 1) & (capacity() - 1)];
    last.previous = std::exchange(heads_[bucket(owner, gram)], written_);
  }
}

// How many tokens before the place are those that the text ends with.
std::uint32_t SharedNgrams::match_length(std::uint64_t place,
                                         std::span<const std::uint32_t> text) const {
  const auto most =
      static_cast<std::uint32_t>(std::min<std::size_t>(options_.max_match, text.size()));
  std::uint32_t length = 0;
  while (length < most && length < place && kept(place - 1 - length) &&
         entry(place - 1 - length).token == text[text.size() - 1 - length])
    ++length;
  return length;
}

SharedNgrams::Match SharedNgrams::find(std::uint32_t owner,
                                       std::span<const std::uint32_t> text) const {
  Match best;
  if (text.size() < options_.min_match) return best;
  std::uint64_t place = heads_[bucket(owner, text.last(options_.min_match))];
  for (std::uint32_t i = 0; i < kMaxCandidates && place != 0 && kept(place - 1); ++i) {
    // Places with the same hash may have different tokens, or another owner.
    const bool followed = place < written_ && entry(place).token != kBreak;
    if (followed && entry(place - 1).owner == owner) {
      const std::uint32_t length = match_length(place, text);
      if (length >= options_.min_match && length > best.length) best = {place, length};
    }
    place = entry(place - 1).previous;
  }
  return best;
}

void SharedNgrams::follow(const Match& match, std::uint32_t most,
                          std::vector<std::uint32_t>& tokens) const {
  if (match.length == 0) return;
  for (std::uint64_t number = match.place; most > 0 && number < written_; ++number, --most) {
    if (entry(number).token == kBreak) return;
    tokens.push_back(entry(number).token);
  }
}

}  // namespace hearth
