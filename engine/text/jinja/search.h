// Finds a text in others in linear time, whatever the texts: string_view::find takes the product of
// both lengths on texts such as "aaaa...".
#pragma once

#include <string_view>
#include <vector>

#include "engine/text/jinja/heap.h"

namespace hearth::jinja {

class Finder {
 public:
  // Keeps the view.
  Finder(Heap& heap, std::string_view needle);

  static constexpr std::size_t npos = std::string_view::npos;
  // The first place at or behind `from`, or npos.
  std::size_t find(std::string_view text, std::size_t from);
  // Every place, overlapping ones too. REQUIRES: the needle is not empty.
  std::vector<std::uint32_t> find_all(std::string_view text);

 private:
  Heap& heap_;
  std::string_view needle_;
  std::vector<std::uint32_t> borders_;  // Knuth, Morris and Pratt's table, for long needles
};

}  // namespace hearth::jinja
