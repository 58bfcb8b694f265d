// The keywords of objects.
#include <algorithm>

#include <fmt/format.h>

#include "engine/grammar/code_points.h"
#include "engine/grammar/schema_compiler.h"

namespace hearth::grammar {
namespace {

constexpr std::size_t kMostProperties = 10'000;

}  // namespace

Shape SchemaCompiler::only_object(ObjectShape object) const {
  Shape shape;
  shape.objects.push_back(std::move(object));
  return shape;
}

Shape SchemaCompiler::with_object(ObjectShape object) const {
  Shape shape = any_shape();
  shape.objects[0] = std::move(object);
  return shape;
}

// properties, patternProperties and additionalProperties belong together: the last is about names
// that the other two do not cover.
std::optional<Shape> SchemaCompiler::object_part(SchemaId id, const JsonValue& schema,
                                                 bool negated) {
  const JsonValue* const properties = schema.find("properties");
  const JsonValue* const patterns = schema.find("patternProperties");
  const JsonValue* additional = schema.find("additionalProperties");
  const char* additional_name = "additionalProperties";
  if (const JsonValue* const unevaluated = schema.find("unevaluatedProperties")) {
    // Without other keywords that look at properties, these are the same.
    for (const char* const other : {"allOf", "anyOf", "oneOf", "not", "if", "$ref", "$dynamicRef",
                                    "dependentSchemas", "$recursiveRef"})
      if (schema.find(other) != nullptr)
        refuse(id, "unevaluatedProperties", fmt::format("together with {}", other));
    if (additional == nullptr) additional = unevaluated, additional_name = "unevaluatedProperties";
  }
  if (properties == nullptr && patterns == nullptr && additional == nullptr) return std::nullopt;
  for (const auto& [value, name] :
       {std::pair{properties, "properties"}, std::pair{patterns, "patternProperties"}})
    if (value != nullptr && !value->is_object()) refuse_invalid(id, name, "expected an object");
  if (properties != nullptr && properties->members.size() > kMostProperties)
    refuse(id, "properties", fmt::format("more than {} in one object", kMostProperties));
  spend(properties != nullptr ? properties->members.size() : 0);

  if (negated) {
    // Some property has a value that its schema does not allow.
    Shape out;
    std::vector<ExprId> covered;
    const auto demand = [&](ExprId names, NodeId value) {
      if (value == kNoNode) return;
      ObjectShape object;
      object.demands.push_back({names, value});
      out.objects.push_back(std::move(object));
    };
    if (patterns != nullptr) {
      for (const auto& [text, value] : patterns->members) {
        covered.push_back(pattern(id, "patternProperties", text));
        demand(covered.back(), node_of(subschema(id, value, "patternProperties", text), true));
      }
    }
    if (additional != nullptr) {
      if (properties != nullptr && !properties->members.empty()) {
        std::vector<std::u32string> names;
        for (const auto& [name, value] : properties->members) names.push_back(to_code_points(name));
        covered.push_back(data_.pool.one_of(std::move(names)));
      }
      demand(data_.pool.complement(data_.pool.either(std::move(covered))),
             node_of(subschema(id, *additional, additional_name), true));
    }
    if (properties == nullptr) return out;
    for (const auto& [name, value] : properties->members) {
      const NodeId node = node_of(subschema(id, value, "properties", name), true);
      if (node == kNoNode) continue;
      ObjectShape object;
      object.property(name, node).required = true;
      out.objects.push_back(std::move(object));
    }
    return out;
  }

  ObjectShape object;
  ObjectShape::Group group;
  if (patterns != nullptr) {
    for (const auto& [text, value] : patterns->members)
      group.patterns.emplace_back(pattern(id, "patternProperties", text),
                                  node_of(subschema(id, value, "patternProperties", text)));
  }
  if (additional != nullptr)
    group.additional = node_of(subschema(id, *additional, additional_name));
  if (properties != nullptr) {
    for (const auto& [name, value] : properties->members) {
      NodeId node = node_of(subschema(id, value, "properties", name));
      for (const auto& [expression, also] : group.patterns)
        if (data_.pool.matches(expression, to_code_points(name))) node = nodes_.both(node, also);
      object.property(name, node);
    }
  }
  if (!group.patterns.empty() || group.additional != kAnyNode)
    object.groups.push_back(std::move(group));
  return with_object(std::move(object));
}

std::optional<Shape> SchemaCompiler::required_part(SchemaId id, const JsonValue& schema,
                                                   bool negated) {
  const JsonValue* const required = schema.find("required");
  if (required == nullptr) return std::nullopt;
  if (required->is_boolean()) return std::nullopt;  // draft 3's, inside of properties
  if (!required->is_array()) refuse_invalid(id, "required", "expected a list of names");
  ObjectShape all;
  Shape none;
  for (const JsonValue& name : required->items) {
    if (!name.is_string()) refuse_invalid(id, "required", "expected a list of names");
    if (negated) {
      ObjectShape without;
      without.property(name.text, kNoNode);
      none.objects.push_back(std::move(without));
    } else {
      all.property(name.text, kAnyNode).required = true;
    }
  }
  return negated ? none : with_object(std::move(all));
}

std::optional<Shape> SchemaCompiler::property_count_part(SchemaId id, const JsonValue& schema,
                                                         bool negated) {
  const JsonValue* const min = schema.find("minProperties");
  const JsonValue* const max = schema.find("maxProperties");
  if (min == nullptr && max == nullptr) return std::nullopt;
  ObjectShape object;
  if (min != nullptr) object.min = count_value(id, *min, "minProperties");
  if (max != nullptr) object.max = count_value(id, *max, "maxProperties");
  if (!negated) {
    if (object.min > object.max) {
      Shape shape = any_shape();
      shape.objects.clear();
      return shape;
    }
    return with_object(std::move(object));
  }
  Shape out;
  if (object.min > 0) out.objects.push_back(ObjectShape{.min = 0, .max = object.min - 1});
  if (object.max != kUnbounded) out.objects.push_back(ObjectShape{.min = object.max + 1});
  return out;
}

std::optional<Shape> SchemaCompiler::names_part(SchemaId id, const JsonValue& schema,
                                                bool negated) {
  const JsonValue* const names = schema.find("propertyNames");
  if (names == nullptr) return std::nullopt;
  const SchemaId child = subschema(id, *names, "propertyNames");
  if (negated) {
    Shape out;
    ObjectShape other;
    other.demands.push_back({data_.pool.complement(shape_of({child, false})->text), kAnyNode});
    if (data_.pool.is_live(other.demands[0].names)) out.objects.push_back(std::move(other));
    return out;
  }
  ObjectShape object;
  object.names = shape_of({child, false})->text;
  if (object.names == kNothing) object = ObjectShape{.max = 0};
  return with_object(std::move(object));
}

// dependentRequired, dependentSchemas, and draft 7's dependencies, which is both: the property is
// missing, or the condition holds.
std::optional<Shape> SchemaCompiler::dependency_part(SchemaId id, const JsonValue& schema,
                                                     bool negated) {
  std::optional<Shape> result;
  for (const char* const keyword : {"dependencies", "dependentRequired", "dependentSchemas"}) {
    const JsonValue* const all = schema.find(keyword);
    if (all == nullptr) continue;
    if (!all->is_object()) refuse_invalid(id, keyword, "expected an object");
    for (const auto& [name, condition] : all->members) {
      ObjectShape present, absent;
      present.property(name, kAnyNode).required = true;
      absent.property(name, kNoNode);
      Shape one;
      const JsonValue single{.kind = JsonValue::Kind::kArray, .items = {condition}};
      if (condition.is_array() || condition.is_string()) {
        const std::vector<JsonValue>& others =
            condition.is_array() ? condition.items : single.items;
        for (const JsonValue& other : others) {
          if (!other.is_string()) refuse_invalid(id, keyword, "expected a list of names");
          if (negated) {
            ObjectShape without = present;
            if (other.text == name) continue;
            without.property(other.text, kNoNode);
            one.objects.push_back(std::move(without));
          } else {
            present.property(other.text, kAnyNode).required = true;
          }
        }
        if (!negated) {
          one = with_object(std::move(absent));
          one.objects.push_back(std::move(present));
        }
      } else {
        const SchemaId child = subschema(id, condition, keyword, name);
        one = both(only_object(std::move(present)), *shape_of({child, negated}), id, keyword);
        if (!negated) one = either(with_object(std::move(absent)), std::move(one), id, keyword);
      }
      if (!result)
        result = std::move(one);
      else if (negated)
        result = either(std::move(*result), std::move(one), id, keyword);
      else
        result = both(*result, one, id, keyword);
    }
  }
  return result;
}

}  // namespace hearth::grammar
