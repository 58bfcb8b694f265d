// Makes the values of one rendering and owns their memory. One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/text/jinja/budget.h"
#include "engine/text/jinja/value.h"

namespace hearth::jinja {

class Heap {
 public:
  explicit Heap(Budget& budget) : budget_(budget) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Budget& budget() { return budget_; }

  // Uninitialised; for types without destructors only.
  template <class T>
  T* array(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= alignof(std::max_align_t));
    if (count > limit_ / sizeof(T)) fail("the template needs too much memory");
    return static_cast<T*>(allocate(count * sizeof(T)));
  }
  template <class T>
  T* make(T value) {
    return new (array<T>(1)) T(std::move(value));
  }

  std::string_view copy(std::string_view text);
  Value string(std::string_view text, Origin origin = Origin::kTemplate) {
    return Value::borrowed(copy(text), origin);
  }
  // The bytes [begin, end) of a string, with their marks. Shares its memory.
  Value slice(const Value& string, std::size_t begin, std::size_t end);

  Value list(std::span<const Value> items) { return sequence(Kind::kList, items); }
  Value tuple(std::span<const Value> items) { return sequence(Kind::kTuple, items); }
  Value pair(const Value& first, const Value& second) {
    const Value both[] = {first, second};
    return tuple(both);
  }
  // Keeps the items where they are: they live on this heap already.
  Value adopt(Kind kind, std::span<const Value> items);
  Value iterator(std::span<const Value> items, std::string_view type = "generator");
  Value dict(std::size_t capacity = 0, Kind kind = Kind::kDict);
  // Without a look whether the key is there: the caller knows that it is not.
  void append(Dict& dict, const Value& key, const Value& value);
  Value undefined(Undefined::Why why, std::string_view name, std::string_view type = {});

 private:
  void* allocate(std::size_t bytes);
  Value sequence(Kind kind, std::span<const Value> items);

  static constexpr std::size_t limit_ = std::size_t{1} << 32;
  Budget& budget_;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* free_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace hearth::jinja
