#include "engine/grammar/schema_compiler.h"

#include <algorithm>

#include "engine/grammar/code_points.h"
#include "engine/grammar/regex.h"

namespace hearth::grammar {
namespace {

constexpr std::size_t kMostKinds = 600;  // of objects or arrays in one shape
constexpr std::size_t kManyKinds = 8;
constexpr std::size_t kMostWork = 20'000'000;
constexpr auto kLongestCompile = std::chrono::seconds(2);
constexpr std::size_t kMostNodes = 200'000;

}  // namespace

SchemaCompiler::SchemaCompiler(SchemaDocument& document, GrammarData& data)
    : document_(document),
      data_(data),
      deadline_(std::chrono::steady_clock::now() + kLongestCompile) {
  const auto number = [&](const char* pattern) {
    return *parse_regex(data_.pool, pattern, RegexMatch::kFull);
  };
  any_number_ = number("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?");
  plain_number_ = number("-?(0|[1-9][0-9]*)(\\.[0-9]+)?");
  integer_ = number("-?(0|[1-9][0-9]*)");
  negative_zero_ = number("-0(\\.0+)?([eE][+-]?[0-9]+)?");
  fractional_ = number("-?(0|[1-9][0-9]*)\\.[0-9]*[1-9][0-9]*");
}

void SchemaCompiler::spend(std::size_t work) {
  work_ += work + 1;
  const bool late = (work_ & 0xFF) < work + 1 && std::chrono::steady_clock::now() > deadline_;
  if (work_ > kMostWork || late || nodes_.size() > kMostNodes || data_.pool.exhausted())
    throw Refusal{unsupported("the schema at #: too large or too intricate to compile")};
  if (data_.pool.gave_up())
    throw Refusal{unsupported("the schema at #: its patterns are too intricate to combine")};
}

SchemaId SchemaCompiler::subschema(SchemaId parent, const JsonValue& value,
                                   std::string_view keyword, std::string_view name) {
  if (!value.is_object() && !value.is_boolean())
    refuse_invalid(parent, keyword, "expected a schema, that is an object or a boolean");
  return document_.child(parent, value, keyword, name);
}

NodeId SchemaCompiler::node_of(SchemaId schema, bool negated) {
  const JsonValue& value = document_.value(schema);
  if (value.is_boolean() || (value.is_object() && value.members.empty())) {
    const bool any = value.kind != JsonValue::Kind::kFalse;
    return any != negated ? kAnyNode : kNoNode;
  }
  return nodes_.of({schema, negated});
}

Shape SchemaCompiler::any_shape() const {
  Shape shape{.null = true, .no = true, .yes = true, .number = any_number_, .text = kAnyText};
  shape.objects.emplace_back();
  shape.arrays.emplace_back();
  return shape;
}

SchemaCompiler::ShapePointer SchemaCompiler::shape_of(Term term) {
  const auto known = shapes_.find(term);
  if (known != shapes_.end()) return known->second;
  if (open_.size() > 1000)
    refuse(term.schema, "$ref", "nested too deeply without reaching a value");
  if (!open_.insert(term).second) {
    if (probing_ > 0) throw StillOpen{};
    refuse_invalid(term.schema, "$ref", "refers back to itself without reaching a value");
  }
  struct Close {
    std::set<Term>& open;
    Term term;
    ~Close() { open.erase(term); }
  } const close{open_, term};
  auto shape = std::make_shared<const Shape>(make_shape(term));
  shapes_[term] = shape;
  return shape;
}

Shape SchemaCompiler::make_shape(Term term) {
  spend(1);
  if (const auto known = constants_.find(term.schema); known != constants_.end())
    return constant(0, *known->second, term.negated, "const");
  const JsonValue& schema = document_.value(term.schema);
  if (schema.is_boolean())
    return (schema.kind == JsonValue::Kind::kTrue) != term.negated ? any_shape() : Shape{};
  using Method = std::optional<Shape> (SchemaCompiler::*)(SchemaId, const JsonValue&, bool);
  static constexpr Method kParts[] = {
      &SchemaCompiler::refused_part,    &SchemaCompiler::type_part,
      &SchemaCompiler::enum_part,       &SchemaCompiler::number_part,
      &SchemaCompiler::string_part,     &SchemaCompiler::object_part,
      &SchemaCompiler::required_part,   &SchemaCompiler::property_count_part,
      &SchemaCompiler::names_part,      &SchemaCompiler::items_part,
      &SchemaCompiler::item_count_part, &SchemaCompiler::contains_part,
      &SchemaCompiler::unique_part,     &SchemaCompiler::reference_part,
      &SchemaCompiler::all_of_part,     &SchemaCompiler::any_of_part,
      &SchemaCompiler::not_part,        &SchemaCompiler::if_part,
      &SchemaCompiler::dependency_part};
  // Before 2019-09, keywords next to $ref do not count.
  if (document_.draft() <= Draft::k7 && schema.find("$ref") != nullptr)
    return *reference_part(term.schema, schema, term.negated);
  std::optional<Shape> result;
  for (const Method part : kParts) {
    std::optional<Shape> shape = (this->*part)(term.schema, schema, term.negated);
    if (!shape) continue;
    if (!result)
      result = std::move(shape);
    else if (term.negated)
      result = either(std::move(*result), std::move(*shape), term.schema, "not");
    else
      result = both(*result, *shape, term.schema, "allOf");
  }
  if (!result) result = term.negated ? Shape{} : any_shape();
  // Last, because what else the schema says tells many alternatives apart.
  std::optional<Shape> one_of =
      one_of_part(term.schema, schema, term.negated, term.negated ? any_shape() : *result);
  if (!one_of) return *std::move(result);
  if (!term.negated) return *std::move(one_of);
  return either(std::move(*result), std::move(*one_of), term.schema, "not");
}

SchemaCompiler::ShapePointer SchemaCompiler::node_shape(NodeId node) {
  const auto known = node_shapes_.find(node);
  if (known != node_shapes_.end()) return known->second;
  ShapePointer result;
  if (node == kAnyNode) {
    result = std::make_shared<const Shape>(any_shape());
  } else if (node == kNoNode) {
    result = std::make_shared<const Shape>();
  } else {
    const std::vector<Term> terms = nodes_.terms(node);
    for (const Term& term : terms) {
      const ShapePointer shape = shape_of(term);
      result = result ? std::make_shared<const Shape>(both(*result, *shape, term.schema, "allOf"))
                      : shape;
    }
  }
  node_shapes_[node] = result;
  return result;
}

Shape SchemaCompiler::either(Shape a, Shape b, SchemaId at, std::string_view keyword) {
  Shape out = std::move(a);
  out.null = out.null || b.null;
  out.no = out.no || b.no;
  out.yes = out.yes || b.yes;
  out.number = data_.pool.either(out.number, b.number);
  out.text = data_.pool.either(out.text, b.text);
  const auto is_any_object = [](const ObjectShape& o) {
    return o.properties.empty() && o.groups.empty() && o.demands.empty() && o.names == kAnyText &&
           o.min == 0 && o.max == kUnbounded;
  };
  const auto is_any_array = [](const ArrayShape& o) {
    return o.first.empty() && o.rest == kAnyNode && o.min == 0 && o.max == kUnbounded &&
           o.contains.empty() && !o.unique;
  };
  if (!(out.objects.size() == 1 && is_any_object(out.objects[0]))) {
    if (b.objects.size() == 1 && is_any_object(b.objects[0])) out.objects.clear();
    for (ObjectShape& object : b.objects) out.objects.push_back(std::move(object));
  }
  if (!(out.arrays.size() == 1 && is_any_array(out.arrays[0]))) {
    if (b.arrays.size() == 1 && is_any_array(b.arrays[0])) out.arrays.clear();
    for (ArrayShape& array : b.arrays) out.arrays.push_back(std::move(array));
  }
  if (out.objects.size() > kMostKinds || out.arrays.size() > kMostKinds)
    refuse(at, keyword, "too many combinations");
  return out;
}

Shape SchemaCompiler::both(const Shape& a, const Shape& b, SchemaId at, std::string_view keyword) {
  Shape out;
  out.null = a.null && b.null;
  out.no = a.no && b.no;
  out.yes = a.yes && b.yes;
  // Most intersections of number languages are with all numbers; those leave the other as it is.
  if (a.number == any_number_)
    out.number = b.number;
  else if (b.number == any_number_)
    out.number = a.number;
  else
    out.number = data_.pool.both(a.number, b.number);
  if (!data_.pool.is_live(out.number)) out.number = kNothing;
  out.text = data_.pool.both(a.text, b.text);
  if (!data_.pool.is_live(out.text)) out.text = kNothing;
  spend(a.objects.size() * b.objects.size() + a.arrays.size() * b.arrays.size());
  for (const ObjectShape& x : a.objects) {
    for (const ObjectShape& y : b.objects) {
      ObjectShape object;
      if (!both_objects(x, y, object)) continue;
      // With many combinations, it pays to search for those that no object can satisfy.
      if (out.objects.size() >= kManyKinds && probing_ == 0 && !possible_object(object, 2))
        continue;
      out.objects.push_back(std::move(object));
      if (out.objects.size() > kMostKinds) refuse(at, keyword, "too many combinations");
    }
  }
  for (const ArrayShape& x : a.arrays) {
    for (const ArrayShape& y : b.arrays) {
      ArrayShape array;
      if (both_arrays(x, y, array)) out.arrays.push_back(std::move(array));
      if (out.arrays.size() > kMostKinds) refuse(at, keyword, "too many combinations");
    }
  }
  return out;
}

NodeId SchemaCompiler::value_of(const ObjectShape& object, const std::string& name) {
  const auto own = object.index.find(name);
  if (own != object.index.end()) return object.properties[own->second].value;
  NodeId value = kAnyNode;
  for (const ObjectShape::Group& group : object.groups) {
    bool matched = false;
    for (const auto& [expression, node] : group.patterns) {
      if (!data_.pool.matches(expression, to_code_points(name))) continue;
      matched = true;
      value = nodes_.both(value, node);
    }
    if (!matched) value = nodes_.both(value, group.additional);
  }
  if (object.names != kAnyText && !data_.pool.matches(object.names, to_code_points(name)))
    value = kNoNode;
  return value;
}

// False if it is clear that there is no such object.
bool SchemaCompiler::both_objects(const ObjectShape& a, const ObjectShape& b, ObjectShape& out) {
  spend(a.properties.size() + b.properties.size());
  out.min = std::max(a.min, b.min);
  out.max = std::min(a.max, b.max);
  out.names = data_.pool.both(a.names, b.names);
  out.groups = a.groups;
  out.groups.insert(out.groups.end(), b.groups.begin(), b.groups.end());
  out.demands = a.demands;
  out.demands.insert(out.demands.end(), b.demands.begin(), b.demands.end());
  if (out.min > out.max) return false;
  const auto add = [&](const ObjectShape& own, const ObjectShape& other) {
    for (const ObjectShape::Property& property : own.properties) {
      if (out.index.count(property.name) != 0) continue;
      const NodeId value = nodes_.both(property.value, value_of(other, property.name));
      const auto there = other.index.find(property.name);
      const bool required = property.required || (there != other.index.end() &&
                                                  other.properties[there->second].required);
      if (required && value == kNoNode) return false;
      out.property(property.name, value).required = required;
    }
    return true;
  };
  return add(a, b) && add(b, a);
}

bool SchemaCompiler::both_arrays(const ArrayShape& a, const ArrayShape& b, ArrayShape& out) {
  out.min = std::max(a.min, b.min);
  out.max = std::min(a.max, b.max);
  const std::size_t first = std::max(a.first.size(), b.first.size());
  const auto item = [](const ArrayShape& array, std::size_t i) {
    return i < array.first.size() ? array.first[i] : array.rest;
  };
  for (std::size_t i = 0; i < first; ++i) out.first.push_back(nodes_.both(item(a, i), item(b, i)));
  out.rest = nodes_.both(a.rest, b.rest);
  out.contains = a.contains;
  out.contains.insert(out.contains.end(), b.contains.begin(), b.contains.end());
  out.unique = a.unique || b.unique;
  for (std::size_t i = 0; i < out.first.size(); ++i)
    if (out.first[i] == kNoNode) out.max = std::min(out.max, static_cast<std::uint32_t>(i));
  if (out.rest == kNoNode)
    out.max = std::min(out.max, static_cast<std::uint32_t>(out.first.size()));
  return out.min <= out.max;
}

bool SchemaCompiler::possible_node(NodeId node, int depth) {
  if (node == kNoNode) return false;
  if (node == kAnyNode || depth == 0) return true;
  const auto known = possible_.find(node);
  if (known != possible_.end()) return known->second;
  ShapePointer shape;
  ++probing_;
  try {
    shape = node_shape(node);
  } catch (const StillOpen&) {
    // It depends on a schema that is still being read: nothing is certain.
  } catch (const Refusal&) {
    // Too intricate to decide; the question comes up again if the node is needed.
  }
  --probing_;
  if (shape == nullptr) return true;
  possible_[node] = true;  // for cycles
  const bool result = possible(*shape, depth - 1);
  if (result)
    possible_.erase(node);  // only as far as `depth` reached
  else
    possible_[node] = false;
  return result;
}

bool SchemaCompiler::possible_object(const ObjectShape& object, int depth) {
  for (const ObjectShape::Property& property : object.properties)
    if (property.required && !possible_node(property.value, depth)) return false;
  // A demand needs a name that the object may have.
  for (const ObjectShape::Demand& demand : object.demands) {
    bool met =
        std::any_of(object.properties.begin(), object.properties.end(), [&](const auto& one) {
          return data_.pool.matches(demand.names, to_code_points(one.name)) &&
                 possible_node(nodes_.both(one.value, demand.value), depth);
        });
    const bool closed = std::any_of(object.groups.begin(), object.groups.end(),
                                    [](const ObjectShape::Group& group) {
                                      return group.patterns.empty() && group.additional == kNoNode;
                                    });
    met = met || !closed;
    if (!met) return false;
  }
  return true;
}

bool SchemaCompiler::possible(const Shape& shape, int depth) {
  spend(1);
  if (shape.null || shape.no || shape.yes) return true;
  if (data_.pool.is_live(shape.number) || data_.pool.is_live(shape.text)) return true;
  for (const ObjectShape& object : shape.objects)
    if (possible_object(object, depth)) return true;
  for (const ArrayShape& array : shape.arrays) {
    bool good = true;
    for (std::size_t i = 0; i < array.min && good; ++i) {
      const bool first = i < array.first.size();
      good = possible_node(first ? array.first[i] : array.rest, depth);
      if (!first) break;
    }
    if (good) return true;
  }
  return false;
}

}  // namespace hearth::grammar
