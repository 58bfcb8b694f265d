#include "engine/text/jinja/heap.h"

#include <algorithm>
#include <cstring>

#include "runtime/rounding.h"

namespace hearth::jinja {
namespace {

constexpr std::size_t kChunkBytes = 64 * 1024;
constexpr std::size_t kAlignment = alignof(std::max_align_t);

}  // namespace

void* Heap::allocate(std::size_t bytes) {
  bytes = round_up(std::max<std::size_t>(bytes, 1), kAlignment);
  budget_.handle_bytes(bytes);
  if (bytes > kChunkBytes / 4) {
    budget_.take_memory(bytes);
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));
    return chunks_.back().get();
  }
  if (bytes > left_) {
    budget_.take_memory(kChunkBytes);
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kChunkBytes));
    free_ = chunks_.back().get();
    left_ = kChunkBytes;
  }
  std::byte* const result = free_;
  free_ += bytes;
  left_ -= bytes;
  return result;
}

std::string_view Heap::copy(std::string_view text) {
  if (text.empty()) return "";
  char* const bytes = array<char>(text.size());
  std::memcpy(bytes, text.data(), text.size());
  return {bytes, text.size()};
}

Value Heap::slice(const Value& string, std::size_t begin, std::size_t end) {
  Value part = string;
  part.text = string.text + begin;
  part.size = static_cast<std::uint32_t>(end - begin);
  if (part.size == 0) part.marks = nullptr;
  if (part.marks == nullptr || part.marks == &kAllInput) return part;

  const std::span<const Run> runs(string.marks->runs, string.marks->count);
  const auto ends_before = [](const Run& run, std::size_t at) { return run.end <= at; };
  const auto first = std::lower_bound(runs.begin(), runs.end(), begin, ends_before);
  auto last = std::lower_bound(first, runs.end(), end - 1, ends_before);
  if (first == last) {
    part.marks = first->origin == Origin::kInput ? &kAllInput : nullptr;
    return part;
  }
  ++last;
  const auto count = static_cast<std::size_t>(last - first);
  Run* const copied = array<Run>(count);
  for (std::size_t i = 0; i < count; ++i)
    copied[i] = {static_cast<std::uint32_t>(std::min<std::size_t>(first[i].end, end) - begin),
                 first[i].origin};
  part.marks = make(Marks{copied, static_cast<std::uint32_t>(count)});
  return part;
}

Value Heap::adopt(Kind kind, std::span<const Value> items) {
  Value value = Value::of(kind);
  value.list = make(List{items.data(), static_cast<std::uint32_t>(items.size())});
  return value;
}

Value Heap::sequence(Kind kind, std::span<const Value> items) {
  Value* const copied = array<Value>(items.size());
  std::ranges::copy(items, copied);
  return adopt(kind, {copied, items.size()});
}

Value Heap::iterator(std::span<const Value> items, std::string_view type) {
  Value value = Value::of(Kind::kIterator);
  value.iterator = make(Iterator{items, type});
  return value;
}

Value Heap::dict(std::size_t capacity, Kind kind) {
  Value value = Value::of(kind);
  value.dict = make(Dict{.entries = array<Dict::Entry>(capacity),
                         .capacity = static_cast<std::uint32_t>(capacity)});
  return value;
}

void Heap::append(Dict& dict, const Value& key, const Value& value) {
  if (dict.size == dict.capacity) {
    const std::uint32_t capacity = std::max<std::uint32_t>(4, dict.capacity * 2);
    Dict::Entry* const grown = array<Dict::Entry>(capacity);
    std::copy_n(dict.entries, dict.size, grown);
    dict.entries = grown;
    dict.capacity = capacity;
  }
  dict.entries[dict.size++] = {key, value};
}

Value Heap::undefined(Undefined::Why why, std::string_view name, std::string_view type) {
  Value value = Value::of(Kind::kUndefined);
  value.undefined = make(Undefined{why, name, type});
  return value;
}

}  // namespace hearth::jinja
