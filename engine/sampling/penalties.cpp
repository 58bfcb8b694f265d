#include "engine/sampling/penalties.h"

#include <unordered_map>

namespace hearth {

std::vector<params::TokenCount> count_tokens(std::span<const uint32_t> prompt,
                                             std::span<const uint32_t> generated,
                                             float repetition_penalty, size_t room) {
  std::vector<params::TokenCount> entries;
  std::unordered_map<uint32_t, size_t> places;
  const auto add = [&](uint32_t token, uint32_t count) {
    if (entries.size() == room && !places.contains(token)) return;
    const auto [place, is_new] = places.try_emplace(token, entries.size());
    if (is_new) entries.push_back({.token = token, .count = 0});
    entries[place->second].count += count;
  };
  if (repetition_penalty != 1.0f)
    for (auto token = prompt.rbegin(); token != prompt.rend() && entries.size() < room / 2; ++token)
      add(*token, 0);
  for (const uint32_t token : generated) add(token, 1);
  return entries;
}

}  // namespace hearth
