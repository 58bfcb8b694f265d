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
  ~Finder() { heap_.budget().return_memory(taken_); }
  Finder(const Finder&) = delete;
  Finder& operator=(const Finder&) = delete;

  static constexpr std::size_t npos = std::string_view::npos;
  // The first place at or after `from`, or npos.
  std::size_t find(std::string_view text, std::size_t from);
  // The last place, or npos. REQUIRES: the needle is not empty.
  std::size_t find_last(std::string_view text);
  // Every place, overlapping ones too. REQUIRES: the needle is not empty.
  std::vector<std::uint32_t> find_all(std::string_view text);

 private:
  // Calls `found` with every place, overlapping ones too.
  template <class Found>
  void walk(std::string_view text, Found found);

  Heap& heap_;
  std::string_view needle_;
  std::size_t taken_ = 0;               // memory charged for the table
  std::vector<std::uint32_t> borders_;  // Knuth, Morris and Pratt's table, for long needles
};

}  // namespace hearth::jinja
