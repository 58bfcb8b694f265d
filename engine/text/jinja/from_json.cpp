#include "engine/text/jinja/from_json.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

namespace hearth::jinja {

Value from_json(Heap& heap, const nlohmann::ordered_json& json, Origin origin,
                std::span<const std::string_view> template_words) {
  using Type = nlohmann::ordered_json::value_t;
  const Nested nested(heap.budget());
  heap.budget().step();
  const bool input = origin == Origin::kInput;
  Value value;
  switch (json.type()) {
    case Type::boolean:
      value = Value::of(json.get<bool>());
      break;
    case Type::number_integer:
      value = Value::of(json.get<std::int64_t>());
      break;
    case Type::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      const bool fits = number <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
      value = fits ? Value::of(static_cast<std::int64_t>(number))
                   : Value::of(static_cast<double>(number));
      break;
    }
    case Type::number_float:
      value = Value::of(json.get<double>());
      break;
    case Type::string: {
      const auto& text = json.get_ref<const std::string&>();
      if (text.size() > std::numeric_limits<std::uint32_t>::max()) fail("a text is too long");
      const bool is_word = std::ranges::find(template_words, text) != template_words.end();
      return Value::borrowed(text, is_word ? Origin::kTemplate : origin);
    }
    case Type::array: {
      Value* const items = heap.array<Value>(json.size());
      std::size_t count = 0;
      for (const auto& item : json) items[count++] = from_json(heap, item, origin, template_words);
      return heap.adopt(Kind::kList, {items, count});
    }
    case Type::object: {
      value = heap.dict(json.size());
      for (const auto& [key, item] : json.get_ref<const nlohmann::ordered_json::object_t&>())
        heap.append(*value.dict, Value::borrowed(key, origin),
                    from_json(heap, item, origin, template_words));
      return value;
    }
    default:
      value = Value::none();
  }
  value.input = input;
  return value;
}

}  // namespace hearth::jinja
