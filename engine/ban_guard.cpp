#include "engine/ban_guard.h"

#include <limits>
#include <utility>

namespace hearth {

BanGuard::BanGuard(std::vector<std::string> banned, const Detokenizer& detokenizer,
                   StopStrings stop, uint32_t max_new_tokens)
    : strings_(std::move(banned)),
      detokenizer_(detokenizer),
      stop_(std::move(stop)),
      take_backs_left_(64 + 4 * uint64_t{max_new_tokens}) {}

bool BanGuard::push(GeneratedToken token, std::string_view piece, const Text& text) {
  shown_bytes_ += token.text.size();
  held_.push_back(std::move(token));
  strings_.push(piece);
  // What comes after a stop string is not shown.
  const size_t end = text.stop.found() ? shown_bytes_ : std::numeric_limits<size_t>::max();
  if (const std::optional<size_t> first = strings_.find(end)) {
    take_back(*first, text);
    return true;
  }
  // After a stop string the request ends; then finish() releases all.
  if (!text.stop.found()) certain_ = strings_.certain();
  return false;
}

void BanGuard::take_back(size_t first, const Text& text) {
  const uint32_t place = released_ + static_cast<uint32_t>(first);
  bans_.erase(bans_.upper_bound(place), bans_.end());
  std::vector<TokenId>& bans = bans_[place];
  bans.push_back(held_[first].id);
  if (bans.size() > kMostBansPerPlace || take_backs_left_ == 0) gave_up_ = true;
  if (take_backs_left_ > 0) --take_backs_left_;

  for (size_t i = first; i < held_.size(); ++i) shown_bytes_ -= held_[i].text.size();
  held_.resize(first);
  strings_.take_back(first);
  text.detokenizer.emplace(detokenizer_);
  text.stop = stop_;
  for (const GeneratedToken& token : held_) {
    // An end token has no text; it is the last one, and never in front of another.
    static_cast<void>(text.stop.push(text.detokenizer->push(token.id)));
  }
  certain_ = strings_.certain();
}

std::optional<GeneratedToken> BanGuard::release() {
  if (certain_ == 0) return std::nullopt;
  --certain_;
  GeneratedToken token = std::move(held_.front());
  held_.pop_front();
  ++released_;
  strings_.release();
  // The same text as before; only the state counts.
  static_cast<void>(stop_.push(detokenizer_.push(token.id)));
  return token;
}

std::span<const TokenId> BanGuard::bans_at(uint32_t place) const {
  const auto bans = bans_.find(place);
  if (bans == bans_.end()) return {};
  return bans->second;
}

}  // namespace hearth
