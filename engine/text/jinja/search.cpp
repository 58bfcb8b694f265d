#include "engine/text/jinja/search.h"

#include <algorithm>

namespace hearth::jinja {
namespace {

// Up to here the product of both lengths is small enough, and memchr is faster.
constexpr std::size_t kShortNeedle = 32;
constexpr std::size_t kChunk = 16 * 1024;  // searched between two looks at the budget

}  // namespace

Finder::Finder(Heap& heap, std::string_view needle) : heap_(heap), needle_(needle) {
  if (needle_.size() <= kShortNeedle) return;
  const std::size_t bytes = needle_.size() * sizeof(std::uint32_t);
  heap_.budget().take_memory(bytes);
  taken_ = bytes;
  borders_.resize(needle_.size());
  Meter meter(heap_.budget());
  std::uint32_t border = 0;
  for (std::size_t i = 1; i < needle_.size(); ++i) {
    meter.reach(i * sizeof(std::uint32_t));
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
  Meter meter(heap_.budget());
  std::uint32_t matched = 0;
  for (std::size_t i = from; i < text.size(); ++i) {
    meter.reach(i - from);
    while (matched > 0 && text[i] != needle_[matched]) matched = borders_[matched - 1];
    if (text[i] == needle_[matched]) ++matched;
    if (matched == needle_.size()) return i + 1 - needle_.size();
  }
  return npos;
}

template <class Found>
void Finder::walk(std::string_view text, Found found) {
  if (borders_.empty()) {
    for (std::size_t at = 0; (at = find(text, at)) != npos; ++at) found(at);
    return;
  }
  // One pass: a search that starts anew after every match could take the product again.
  Meter meter(heap_.budget());
  std::uint32_t matched = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    meter.reach(i);
    while (matched > 0 && (matched == needle_.size() || text[i] != needle_[matched]))
      matched = borders_[matched - 1];
    if (text[i] == needle_[matched]) ++matched;
    if (matched == needle_.size()) found(i + 1 - needle_.size());
  }
}

std::size_t Finder::find_last(std::string_view text) {
  std::size_t last = npos;
  walk(text, [&](std::size_t at) { last = at; });
  return last;
}

std::vector<std::uint32_t> Finder::find_all(std::string_view text) {
  std::vector<std::uint32_t> places;
  walk(text, [&](std::size_t at) {
    heap_.budget().take_memory(2 * sizeof(std::uint32_t));  // a vector may be half empty
    places.push_back(static_cast<std::uint32_t>(at));
  });
  return places;
}

}  // namespace hearth::jinja
