// The keywords of arrays.
#include <algorithm>

#include <fmt/format.h>

#include "engine/grammar/schema_compiler.h"

namespace hearth::grammar {

Shape SchemaCompiler::with_array(ArrayShape array) const {
  Shape shape = any_shape();
  shape.arrays[0] = std::move(array);
  return shape;
}

// prefixItems and items, or the older items (a list) and additionalItems.
std::optional<Shape> SchemaCompiler::items_part(SchemaId id, const JsonValue& schema,
                                                bool negated) {
  const JsonValue* const items = schema.find("items");
  const JsonValue* prefix = schema.find("prefixItems");
  const JsonValue* rest = items;
  const char *prefix_name = "prefixItems", *rest_name = "items";
  if (items != nullptr && items->is_array()) {
    prefix = items, prefix_name = "items";
    rest = schema.find("additionalItems"), rest_name = "additionalItems";
  }
  if (const JsonValue* const unevaluated = schema.find("unevaluatedItems")) {
    for (const char* const other : {"allOf", "anyOf", "oneOf", "not", "if", "$ref", "$dynamicRef",
                                    "contains", "$recursiveRef"})
      if (schema.find(other) != nullptr)
        refuse(id, "unevaluatedItems", fmt::format("together with {}", other));
    if (rest == nullptr) rest = unevaluated, rest_name = "unevaluatedItems";
  }
  if (prefix == nullptr && rest == nullptr) return std::nullopt;
  if (prefix != nullptr && !prefix->is_array())
    refuse_invalid(id, prefix_name, "expected a list of schemas");
  ArrayShape array;
  std::vector<SchemaId> first;
  if (prefix != nullptr) {
    spend(prefix->items.size());
    for (std::size_t i = 0; i < prefix->items.size(); ++i)
      first.push_back(subschema(id, prefix->items[i], prefix_name, std::to_string(i)));
  }
  std::optional<SchemaId> others;
  if (rest != nullptr) others = subschema(id, *rest, rest_name);
  if (!negated) {
    for (const SchemaId schema_of_item : first) array.first.push_back(node_of(schema_of_item));
    if (others) array.rest = node_of(*others);
    for (std::size_t i = 0; i < array.first.size(); ++i)
      if (array.first[i] == kNoNode) array.max = std::min(array.max, static_cast<std::uint32_t>(i));
    if (array.rest == kNoNode)
      array.max = std::min(array.max, static_cast<std::uint32_t>(first.size()));
    return with_array(std::move(array));
  }
  // Some item does not match its schema.
  Shape out;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const NodeId node = node_of(first[i], true);
    if (node == kNoNode) continue;
    ArrayShape one{.min = static_cast<std::uint32_t>(i + 1)};
    one.first.assign(i, kAnyNode);
    one.first.push_back(node);
    out.arrays.push_back(std::move(one));
  }
  if (others) {
    const NodeId node = node_of(*others, true);
    if (node == kAnyNode) {
      out.arrays.push_back(ArrayShape{.min = static_cast<std::uint32_t>(first.size() + 1)});
    } else if (node != kNoNode) {
      if (!first.empty()) refuse(id, rest_name, "inside a negation, together with a list of items");
      ArrayShape one;
      one.contains.push_back({node, 1, kUnbounded});
      out.arrays.push_back(std::move(one));
    }
  }
  return out;
}

std::optional<Shape> SchemaCompiler::item_count_part(SchemaId id, const JsonValue& schema,
                                                     bool negated) {
  const JsonValue* const min = schema.find("minItems");
  const JsonValue* const max = schema.find("maxItems");
  if (min == nullptr && max == nullptr) return std::nullopt;
  ArrayShape array;
  if (min != nullptr) array.min = count_value(id, *min, "minItems");
  if (max != nullptr) array.max = count_value(id, *max, "maxItems");
  if (!negated) {
    Shape shape = with_array(array);
    if (array.min > array.max) shape.arrays.clear();
    return shape;
  }
  Shape out;
  if (array.min > 0) out.arrays.push_back(ArrayShape{.max = array.min - 1});
  if (array.max != kUnbounded) out.arrays.push_back(ArrayShape{.min = array.max + 1});
  return out;
}

std::optional<Shape> SchemaCompiler::contains_part(SchemaId id, const JsonValue& schema,
                                                   bool negated) {
  const JsonValue* const contains = schema.find("contains");
  if (contains == nullptr || document_.draft() == Draft::k4) return std::nullopt;
  const SchemaId child = subschema(id, *contains, "contains");
  std::uint32_t min = 1, max = kUnbounded;
  if (document_.draft() >= Draft::k2019) {
    if (const JsonValue* const value = schema.find("minContains"))
      min = count_value(id, *value, "minContains");
    if (const JsonValue* const value = schema.find("maxContains"))
      max = count_value(id, *value, "maxContains");
  }
  if (min == 0 && max == kUnbounded) return negated ? Shape{} : any_shape();
  if (!negated && min == 0 && max == 0) {
    ArrayShape array;
    array.rest = node_of(child, true);
    if (array.rest == kNoNode) array.max = 0;
    return with_array(std::move(array));
  }
  if (!negated) {
    ArrayShape array;
    array.contains.push_back({node_of(child), min, max});
    Shape shape = with_array(std::move(array));
    if (min > max) shape.arrays.clear();
    return shape;
  }
  Shape out;
  if (min > 0) {
    ArrayShape fewer;
    if (min == 1)
      fewer.rest = node_of(child, true);
    else
      fewer.contains.push_back({node_of(child), 0, min - 1});
    if (fewer.rest == kNoNode) fewer.max = 0;
    out.arrays.push_back(std::move(fewer));
  }
  if (max != kUnbounded) {
    ArrayShape more;
    more.contains.push_back({node_of(child), max + 1, kUnbounded});
    out.arrays.push_back(std::move(more));
  }
  return out;
}

std::optional<Shape> SchemaCompiler::unique_part(SchemaId id, const JsonValue& schema,
                                                 bool negated) {
  const JsonValue* const unique = schema.find("uniqueItems");
  if (unique == nullptr || unique->kind != JsonValue::Kind::kTrue) return std::nullopt;
  if (negated) refuse(id, "uniqueItems", "inside a negation");
  ArrayShape array;
  array.unique = true;
  return with_array(std::move(array));
}

}  // namespace hearth::grammar
