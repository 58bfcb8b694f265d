#include "engine/near_words.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hearth {
namespace {

// Longer words are no typing mistakes, and comparing them would take time.
constexpr size_t kLongestWord = 200;

struct Likeness {
  bool typo = false;  // otherwise one word is part of the other
  size_t distance = 0;
};

// How alike the words are; nothing if they have little in common.
std::optional<Likeness> likeness(std::string_view wanted, std::string_view word) {
  constexpr size_t kLeastPart = 3;
  // Leading dashes would make any two short options alike.
  const auto bare = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of('-'), text.size()));
  };
  const std::string_view a = bare(wanted), b = bare(word);
  const size_t distance = edit_distance(a, b);
  const size_t shorter = std::min(a.size(), b.size());
  if (distance < shorter && distance <= std::max<size_t>(1, (shorter + 1) / 3))
    return Likeness{.typo = true, .distance = distance};
  if (shorter >= kLeastPart && (a.find(b) != a.npos || b.find(a) != b.npos))
    return Likeness{.distance = distance};
  // A typo in the beginning of a long name.
  if (a.size() > kLeastPart && a.size() < b.size() && edit_distance(a, b.substr(0, a.size())) <= 1)
    return Likeness{.distance = distance};
  return std::nullopt;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

size_t edit_distance(std::string_view from, std::string_view to) {
  // Rows of the usual table; a swap looks back two of them.
  std::vector<size_t> before(to.size() + 1), last(to.size() + 1), row(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replaced = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[to.size()];
}

std::vector<std::string> near_words(std::string_view wanted, std::span<const std::string> known,
                                    size_t most) {
  if (wanted.size() > kLongestWord) return {};
  struct Match {
    Likeness likeness;
    const std::string* word;
  };
  std::vector<Match> matches;
  for (const std::string& word : known)
    if (const auto found = likeness(lower_case(wanted), lower_case(word)))
      matches.push_back({*found, &word});
  std::ranges::stable_sort(matches, [](const Match& a, const Match& b) {
    return std::pair(!a.likeness.typo, a.likeness.distance) <
           std::pair(!b.likeness.typo, b.likeness.distance);
  });
  std::vector<std::string> words;
  for (const Match& match : matches) {
    const Likeness& best = matches.front().likeness;
    // After a likely typo, anything less likely only distracts.
    if (words.size() == most || (best.typo && match.likeness.distance > best.distance) ||
        best.typo != match.likeness.typo)
      break;
    words.push_back(*match.word);
  }
  return words;
}

std::string did_you_mean(std::span<const std::string> near) {
  if (near.empty()) return {};
  return fmt::format("; did you mean {}?", joined_with_or(near));
}

std::string joined_with_or(std::span<const std::string> words) {
  if (words.empty()) return {};
  std::string text;
  if (words.size() > 1)
    text = fmt::format("{} or ", fmt::join(words.first(words.size() - 1), ", "));
  return text + words.back();
}

}  // namespace hearth
