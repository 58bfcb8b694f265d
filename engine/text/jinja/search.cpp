#include "engine/text/jinja/search.h"

#include <algorithm>

namespace hearth::jinja {
namespace {

// Up to here the product of both lengths is small enough, and memchr is faster.
constexpr std::size_t kShortNeedle = 32;
constexpr std::size_t kChunk = 64 * 1024;  // searched between two looks at the budget

}  // namespace

Finder::Finder(Heap& heap, std::string_view needle) : heap_(heap), needle_(needle) {
  if (needle_.size() <= kShortNeedle) return;
  heap_.budget().handle_bytes(needle_.size() * sizeof(std::uint32_t));
  heap_.budget().take_memory(needle_.size() * sizeof(std::uint32_t));
  borders_.resize(needle_.size());
  heap_.budget().return_memory(needle_.size() * sizeof(std::uint32_t));
  std::uint32_t border = 0;
  for (std::size_t i = 1; i < needle_.size(); ++i) {
    while (border > 0 && needle_[i] != needle_[border]) border = borders_[border - 1];
    if (needle_[i] == needle_[border]) ++border;
    borders_[i] = border;
  }
}

std::size_t Finder::find(std::string_view text, std::size_t from) {
  if (from > text.size()) return npos;
  if (needle_.empty()) return from;
  if (borders_.empty()) {
    for (std::size_t at = from; at + needle_.size() <= text.size();) {
      const std::size_t end = std::min(text.size(), at + kChunk + needle_.size());
      const std::size_t found = text.substr(0, end).find(needle_, at);
      const std::size_t reached = found == npos ? end : found;
      heap_.budget().handle_bytes(reached - at);
      if (found != npos) return found;
      at = end - needle_.size() + 1;
    }
    return npos;
  }
  std::uint32_t matched = 0;
  std::size_t charged = from;
  for (std::size_t i = from; i < text.size(); ++i) {
    if (i - charged >= kChunk) {
      heap_.budget().handle_bytes(i - charged);
      charged = i;
    }
    while (matched > 0 && text[i] != needle_[matched]) matched = borders_[matched - 1];
    if (text[i] == needle_[matched]) ++matched;
    if (matched == needle_.size()) {
      heap_.budget().handle_bytes(i - charged);
      return i + 1 - needle_.size();
    }
  }
  heap_.budget().handle_bytes(text.size() - charged);
  return npos;
}

std::vector<std::uint32_t> Finder::find_all(std::string_view text) {
  std::vector<std::uint32_t> places;
  if (!borders_.empty()) {
    // One pass: a search that starts anew behind every match could take the product again.
    heap_.budget().handle_bytes(text.size());
    std::uint32_t matched = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      while (matched > 0 && (matched == needle_.size() || text[i] != needle_[matched]))
        matched = borders_[matched - 1];
      if (text[i] == needle_[matched]) ++matched;
      if (matched == needle_.size())
        places.push_back(static_cast<std::uint32_t>(i + 1 - needle_.size()));
    }
    return places;
  }
  for (std::size_t at = 0; (at = find(text, at)) != npos; ++at)
    places.push_back(static_cast<std::uint32_t>(at));
  return places;
}

}  // namespace hearth::jinja
