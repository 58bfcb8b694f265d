#include "engine/sampling/dry.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hearth {
namespace {

constexpr float kLargestPenalty = 1e9f;  // finite, so that it cannot turn a logit into NaN

}  // namespace

DryPenalties::DryPenalties(DryOptions options, TokenText text, std::span<const uint32_t> tokens)
    : options_(std::move(options)), text_(std::move(text)) {
  std::erase(options_.breakers, std::string());
  for (const std::string& breaker : options_.breakers)
    longest_breaker_ = std::max(longest_breaker_, breaker.size());
  restart(tokens);
}

void DryPenalties::restart(std::span<const uint32_t> tokens) {
  tokens_.clear();
  positions_.clear();
  end_ = {};
  tokens_.reserve(tokens.size());
  for (const uint32_t token : tokens) append(token);
}

void DryPenalties::append(uint32_t token) {
  extend(end_, token, {});
  positions_[token].push_back(static_cast<uint32_t>(tokens_.size()));
  tokens_.push_back(token);
}

const std::optional<std::string>& DryPenalties::text_of(uint32_t token) const {
  const auto place = texts_.find(token);
  return place != texts_.end() ? place->second : texts_.emplace(token, text_(token)).first->second;
}

bool DryPenalties::has_breaker(uint32_t token) const {
  const std::optional<std::string>& text = text_of(token);
  return !text || std::ranges::any_of(options_.breakers, [&](const std::string& breaker) {
    return text->find(breaker) != std::string::npos;
  });
}

// Whether a breaker ends in the text of the token, which is added to the tail.
bool DryPenalties::breaks(End& end, uint32_t token) const {
  const std::optional<std::string>& text = text_of(token);
  if (!text) {
    end.tail.clear();
    return true;
  }
  const size_t before = end.tail.size();
  end.tail += *text;
  bool found = false;
  for (const std::string& breaker : options_.breakers) {
    // Those that end before the token have broken the sequence already.
    const size_t from = before + 1 > breaker.size() ? before + 1 - breaker.size() : 0;
    found = found || end.tail.find(breaker, from) != std::string::npos;
  }
  const size_t keep = longest_breaker_ == 0 ? 0 : longest_breaker_ - 1;
  if (end.tail.size() > keep) end.tail.erase(0, end.tail.size() - keep);
  return found;
}

// Every match that the token continues is one longer, and every earlier place of the token is at
// least a match of one. `path` are the tokens after tokens_ that came before this one.
void DryPenalties::extend(End& end, uint32_t token, std::span<const uint32_t> path) const {
  if (breaks(end, token)) {
    end.matches.clear();
    return;
  }
  std::vector<Match> longer;
  auto match = end.matches.begin();
  const auto add = [&](uint32_t position) {
    while (match != end.matches.end() && match->position + 1 < position) ++match;
    const bool continues = match != end.matches.end() && match->position + 1 == position;
    longer.push_back({.position = position, .length = continues ? match->length + 1 : 1});
  };
  if (const auto places = positions_.find(token); places != positions_.end())
    for (const uint32_t position : places->second) add(position);
  for (size_t i = 0; i < path.size(); ++i)
    if (path[i] == token) add(static_cast<uint32_t>(tokens_.size() + i));
  end.matches = std::move(longer);
}

std::vector<params::TokenBias> DryPenalties::penalties(std::span<const uint32_t> path) const {
  End end;
  if (!path.empty()) {
    end = end_;
    for (size_t i = 0; i < path.size(); ++i) extend(end, path[i], path.first(i));
  }
  const size_t count = tokens_.size() + path.size();
  const auto token_at = [&](size_t i) {
    return i < tokens_.size() ? tokens_[i] : path[i - tokens_.size()];
  };
  const size_t first =
      options_.last_tokens == 0 || options_.last_tokens > count ? 0 : count - options_.last_tokens;
  std::unordered_map<uint32_t, Match> longest;  // by the token that would follow
  for (const Match& match : path.empty() ? end_.matches : end.matches) {
    if (match.position < first) continue;
    const Match inside{
        .position = match.position,
        .length = std::min(match.length, static_cast<uint32_t>(match.position - first + 1))};
    if (inside.length < options_.allowed_length) continue;
    Match& best = longest[token_at(match.position + 1)];
    if (inside.length >= best.length) best = inside;
  }
  std::erase_if(longest, [&](const auto& entry) { return has_breaker(entry.first); });
  std::vector<std::pair<uint32_t, Match>> tokens(longest.begin(), longest.end());
  std::ranges::sort(tokens, [](const auto& a, const auto& b) {
    return std::pair(a.second.length, a.second.position) >
           std::pair(b.second.length, b.second.position);
  });
  if (tokens.size() > options_.most) tokens.resize(options_.most);
  std::vector<params::TokenBias> penalties;
  for (const auto& [token, match] : tokens) {
    const auto excess = static_cast<float>(match.length - options_.allowed_length);
    const float penalty = options_.multiplier * std::pow(options_.base, excess);
    penalties.push_back({.token = token, .bias = std::min(penalty, kLargestPenalty)});
  }
  return penalties;
}

}  // namespace hearth
