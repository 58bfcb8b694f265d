// $ref, allOf, anyOf, oneOf, not, if; and the keywords that are refused.
#include <fmt/format.h>

#include "engine/grammar/schema_compiler.h"

namespace hearth::grammar {
namespace {

constexpr int kDisjointDepth = 4;  // how many levels of required properties are compared

}  // namespace

std::optional<Shape> SchemaCompiler::refused_part(SchemaId id, const JsonValue& schema, bool) {
  for (const char* const keyword : {"$dynamicRef", "$recursiveRef"}) {
    const JsonValue* const value = schema.find(keyword);
    if (value != nullptr && value->is_string()) refuse(id, keyword, "not supported");
  }
  return std::nullopt;
}

std::optional<Shape> SchemaCompiler::reference_part(SchemaId id, const JsonValue& schema,
                                                    bool negated) {
  const JsonValue* const reference = schema.find("$ref");
  if (reference == nullptr) return std::nullopt;
  if (!reference->is_string()) refuse_invalid(id, "$ref", "expected a string");
  spend(16);
  return *shape_of({document_.resolve(id, reference->text, "$ref"), negated});
}

std::optional<Shape> SchemaCompiler::all_of_part(SchemaId id, const JsonValue& schema,
                                                 bool negated) {
  const JsonValue* const all = schema.find("allOf");
  if (all == nullptr) return std::nullopt;
  if (!all->is_array()) refuse_invalid(id, "allOf", "expected a list of schemas");
  Shape result = negated ? Shape{} : any_shape();
  for (std::size_t i = 0; i < all->items.size(); ++i) {
    const SchemaId child = subschema(id, all->items[i], "allOf", std::to_string(i));
    const ShapePointer one = shape_of({child, negated});
    result =
        negated ? either(std::move(result), *one, id, "allOf") : both(result, *one, id, "allOf");
  }
  return result;
}

std::optional<Shape> SchemaCompiler::any_of_part(SchemaId id, const JsonValue& schema,
                                                 bool negated) {
  const JsonValue* const any = schema.find("anyOf");
  if (any == nullptr) return std::nullopt;
  if (!any->is_array()) refuse_invalid(id, "anyOf", "expected a list of schemas");
  Shape result = negated ? any_shape() : Shape{};
  for (std::size_t i = 0; i < any->items.size(); ++i) {
    const SchemaId child = subschema(id, any->items[i], "anyOf", std::to_string(i));
    const ShapePointer one = shape_of({child, negated});
    result =
        negated ? both(result, *one, id, "anyOf") : either(std::move(result), *one, id, "anyOf");
  }
  return result;
}

// Exactly one: each alternative without those that it may overlap with. Most are disjoint, because
// their types or the constants of a required property differ.
std::optional<Shape> SchemaCompiler::one_of_part(SchemaId id, const JsonValue& schema, bool negated,
                                                 const Shape& context) {
  const JsonValue* const one_of = schema.find("oneOf");
  if (one_of == nullptr) return std::nullopt;
  if (!one_of->is_array()) refuse_invalid(id, "oneOf", "expected a list of schemas");
  const std::size_t count = one_of->items.size();
  std::vector<SchemaId> children;
  std::vector<ShapePointer> shapes;
  for (std::size_t i = 0; i < count; ++i) {
    children.push_back(subschema(id, one_of->items[i], "oneOf", std::to_string(i)));
    shapes.push_back(
        std::make_shared<const Shape>(both(context, *shape_of({children[i], false}), id, "oneOf")));
  }
  std::vector<std::vector<std::size_t>> overlaps(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = i + 1; k < count; ++k) {
      if (!possible(both(*shapes[i], *shapes[k], id, "oneOf"), kDisjointDepth)) continue;
      overlaps[i].push_back(k);
      overlaps[k].push_back(i);
    }
  }
  if (!negated) {
    Shape result;
    for (std::size_t i = 0; i < count; ++i) {
      Shape one = *shapes[i];
      for (const std::size_t k : overlaps[i])
        one = both(one, *shape_of({children[k], true}), id, "oneOf");
      result = either(std::move(result), std::move(one), id, "oneOf");
    }
    return result;
  }
  // None of them, or two.
  Shape result = any_shape();
  for (const SchemaId child : children)
    result = both(result, *shape_of({child, true}), id, "oneOf");
  for (std::size_t i = 0; i < count; ++i)
    for (const std::size_t k : overlaps[i])
      if (k > i)
        result = either(std::move(result), both(*shapes[i], *shapes[k], id, "oneOf"), id, "oneOf");
  return result;
}

std::optional<Shape> SchemaCompiler::not_part(SchemaId id, const JsonValue& schema, bool negated) {
  const JsonValue* const inner = schema.find("not");
  if (inner == nullptr) return std::nullopt;
  return *shape_of({subschema(id, *inner, "not"), !negated});
}

std::optional<Shape> SchemaCompiler::if_part(SchemaId id, const JsonValue& schema, bool negated) {
  const JsonValue* const condition = schema.find("if");
  if (condition == nullptr || document_.draft() < Draft::k7) return std::nullopt;
  const JsonValue* const then = schema.find("then");
  const JsonValue* const otherwise = schema.find("else");
  if (then == nullptr && otherwise == nullptr) return std::nullopt;
  const SchemaId test = subschema(id, *condition, "if");
  const auto branch = [&](const JsonValue* value, const char* keyword, bool holds) {
    Shape result = *shape_of({test, !holds});
    if (value == nullptr) return negated ? Shape{} : result;
    return both(result, *shape_of({subschema(id, *value, keyword), negated}), id, keyword);
  };
  Shape first = branch(then, "then", true), second = branch(otherwise, "else", false);
  return either(std::move(first), std::move(second), id, "if");
}

}  // namespace hearth::grammar
