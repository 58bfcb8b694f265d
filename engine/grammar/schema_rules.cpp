// From the shapes of a schema's nodes to rules.
#include <algorithm>

#include <fmt/format.h>

#include "engine/grammar/code_points.h"
#include "engine/grammar/schema_compiler.h"

namespace hearth::grammar {
namespace {

constexpr std::size_t kMostClasses = 200;  // of names in one object
constexpr std::size_t kMostWays = 200;     // to meet the demands of one object
constexpr std::size_t kMostContains = 3;   // in one array, 2^n kinds of items
constexpr std::size_t kMostUniqueValues = 64;

}  // namespace

LexemeId SchemaCompiler::lexeme(Lexeme::Kind kind, ExprId expression) {
  const auto [at, added] = lexemes_.emplace(std::pair{static_cast<int>(kind), expression},
                                            static_cast<LexemeId>(data_.lexemes.size()));
  if (added) data_.lexemes.push_back({kind, expression});
  return at->second;
}

LexemeId SchemaCompiler::literal(std::string_view text) {
  return lexeme(Lexeme::Kind::kJson, data_.pool.literal(text));
}

SchemaId SchemaCompiler::place_of(NodeId node) const {
  for (const Term& term : nodes_.terms(node))
    if (constants_.count(term.schema) == 0 && node != kNoNode) return term.schema;
  return 0;
}

RuleId SchemaCompiler::reach(NodeId node) {
  if (node == kNoNode) return kNoRule;
  const auto [at, added] = rules_.emplace(node, static_cast<RuleId>(data_.values.size()));
  if (added) {
    data_.values.emplace_back();
    pending_.push_back(node);
  }
  return at->second;
}

RuleId SchemaCompiler::compile() {
  data_.open_object = literal("{");
  data_.close_object = literal("}");
  data_.open_array = literal("[");
  data_.close_array = literal("]");
  data_.comma = separator(",");
  data_.colon = separator(":");
  const RuleId root = reach(node_of(0));
  if (root == kNoRule) throw Refusal{invalid("the schema at # allows no value at all")};
  while (!pending_.empty()) {
    const NodeId node = pending_.back();
    pending_.pop_back();
    make_rule(node);
  }
  remove_empty_rules();
  const ValueRule& first = data_.values[root];
  if (first.scalars.empty() && first.objects.empty() && first.arrays.empty())
    throw Refusal{invalid("the schema at # allows no value at all")};
  spend(0);
  return root;
}

// The language of a number without the texts that are not to be generated.
ExprId SchemaCompiler::written_number(ExprId number) {
  if (!data_.generates) return number;
  ExpressionPool& pool = data_.pool;
  number = pool.both(number, pool.complement(negative_zero_));
  // Where a constant may be written as the schema has it, the shortest form is left out.
  spend(spellings_.size());
  std::vector<std::u32string> left_out;
  for (const auto& [shortest, spelling] : spellings_)
    if (pool.matches(number, shortest) && pool.matches(number, spelling))
      left_out.push_back(shortest);
  return left_out.empty() ? number
                          : pool.both(number, pool.complement(pool.one_of(std::move(left_out))));
}

// A comma or colon, with the blank that may follow it.
LexemeId SchemaCompiler::separator(std::string_view text) {
  if (!data_.single_blanks) return literal(text);
  ExpressionPool& pool = data_.pool;
  return lexeme(Lexeme::Kind::kJson,
                pool.concat(pool.literal(text), pool.either({kEpsilon, pool.literal(" ")})));
}

void SchemaCompiler::make_rule(NodeId node) {
  const ShapePointer shape = node_shape(node);
  spend(shape->objects.size() + shape->arrays.size());
  ValueRule rule;
  if (shape->null) rule.scalars.push_back(literal("null"));
  if (shape->no) rule.scalars.push_back(literal("false"));
  if (shape->yes) rule.scalars.push_back(literal("true"));
  if (data_.pool.is_live(shape->number))
    rule.scalars.push_back(lexeme(Lexeme::Kind::kJson, written_number(shape->number)));
  if (data_.pool.is_live(shape->text))
    rule.scalars.push_back(lexeme(Lexeme::Kind::kJsonString, shape->text));
  for (const ObjectShape& object : shape->objects) make_object_rules(node, object, rule);
  for (const ArrayShape& array : shape->arrays) {
    ArrayRule made;
    if (!make_array_rule(node, array, made)) continue;
    rule.arrays.push_back(static_cast<std::uint32_t>(data_.arrays.size()));
    data_.arrays.push_back(std::move(made));
  }
  data_.values[rules_[node]] = std::move(rule);
}

// One rule per way to meet the object's demands: by a property, or by another name.
void SchemaCompiler::make_object_rules(NodeId node, ObjectShape shape, ValueRule& value) {
  std::vector<std::pair<ObjectShape, std::vector<ObjectShape::Demand>>> ways;
  const std::vector<ObjectShape::Demand> demands = std::move(shape.demands);
  shape.demands.clear();
  ways.emplace_back(std::move(shape), std::vector<ObjectShape::Demand>{});
  for (const ObjectShape::Demand& demand : demands) {
    std::vector<std::pair<ObjectShape, std::vector<ObjectShape::Demand>>> next;
    for (const auto& [object, left] : ways) {
      spend(object.properties.size());
      const auto start = static_cast<std::ptrdiff_t>(next.size());
      bool met = false;
      for (std::size_t i = 0; i < object.properties.size() && !met; ++i) {
        const ObjectShape::Property& property = object.properties[i];
        if (!data_.pool.matches(demand.names, to_code_points(property.name))) continue;
        const NodeId both = nodes_.both(property.value, demand.value);
        if (both == kNoNode) continue;
        next.emplace_back(object, left);
        next.back().first.properties[i].value = both;
        next.back().first.properties[i].required = true;
        // A property that meets the demand anyway is enough.
        met = property.required && both == property.value;
        if (met) next.erase(next.begin() + start, next.end() - 1);
      }
      if (met) continue;
      // The same other name may meet several demands.
      for (std::size_t i = 0; i < left.size(); ++i) {
        next.emplace_back(object, left);
        ObjectShape::Demand& joint = next.back().second[i];
        joint = {data_.pool.both(joint.names, demand.names),
                 nodes_.both(joint.value, demand.value)};
      }
      next.emplace_back(object, left);
      next.back().second.push_back(demand);
    }
    if (next.size() > kMostWays)
      refuse(place_of(node), "not", "too many ways in which a property could differ");
    ways = std::move(next);
  }
  for (const auto& [object, left] : ways) {
    ObjectRule made;
    if (!make_object_rule(node, object, left, made)) continue;
    value.objects.push_back(static_cast<std::uint32_t>(data_.objects.size()));
    data_.objects.push_back(std::move(made));
  }
}

// The names other than an object's properties, by which patterns they match: calls `found` with
// each language that is not empty and the node of its values.
void SchemaCompiler::find_other_names(NodeId owner, const ObjectShape& shape, ExprId others,
                                      const std::function<void(ExprId, NodeId)>& found) {
  ExpressionPool& pool = data_.pool;
  std::vector<ExprId> patterns;
  for (const ObjectShape::Group& group : shape.groups)
    for (const auto& [expression, value] : group.patterns)
      if (std::find(patterns.begin(), patterns.end(), expression) == patterns.end())
        patterns.push_back(expression);
  std::vector<bool> matches(patterns.size(), false);
  std::size_t classes = 0;
  const auto node_of_class = [&] {
    NodeId value = kAnyNode;
    for (const ObjectShape::Group& group : shape.groups) {
      bool matched = false;
      for (const auto& [expression, node] : group.patterns) {
        const auto at = std::find(patterns.begin(), patterns.end(), expression) - patterns.begin();
        if (!matches[static_cast<std::size_t>(at)]) continue;
        matched = true;
        value = nodes_.both(value, node);
      }
      if (!matched) value = nodes_.both(value, group.additional);
    }
    return value;
  };
  // Each pattern matches or does not; what cannot be is not followed further.
  const std::function<void(std::size_t, ExprId)> split = [&](std::size_t i, ExprId language) {
    spend(16);
    if (!pool.is_live(language)) return;
    if (i < patterns.size()) {
      matches[i] = true;
      split(i + 1, pool.both(language, patterns[i]));
      matches[i] = false;
      split(i + 1, pool.both(language, pool.complement(patterns[i])));
      return;
    }
    if (++classes > kMostClasses)
      refuse(place_of(owner), "patternProperties", "too many patterns that overlap");
    const NodeId value = node_of_class();
    if (value != kNoNode) found(language, value);
  };
  split(0, pool.both(others, shape.names));
}

bool SchemaCompiler::make_object_rule(NodeId node, const ObjectShape& shape,
                                      const std::vector<ObjectShape::Demand>& demanded,
                                      ObjectRule& rule) {
  ExpressionPool& pool = data_.pool;
  spend(shape.properties.size());
  rule.min = shape.min;
  rule.max = shape.max;
  std::vector<std::u32string> names;
  for (const ObjectShape::Property& property : shape.properties) {
    std::u32string name = to_code_points(property.name);
    NodeId value = property.value;
    if (shape.names != kAnyText && !pool.matches(shape.names, name)) value = kNoNode;
    if (value == kNoNode) {
      if (property.required) return false;
    } else {
      rule.properties.push_back(
          {lexeme(Lexeme::Kind::kJsonString, pool.literal(name)), reach(value), property.required});
    }
    names.push_back(std::move(name));
  }
  const ExprId others = names.empty() ? kAnyText : pool.complement(pool.one_of(std::move(names)));
  const auto add = [&](std::vector<ObjectRule::Property>& to, ExprId language, NodeId value) {
    to.push_back({lexeme(Lexeme::Kind::kJsonString, language), reach(value), false});
  };
  find_other_names(node, shape, others,
                   [&](ExprId language, NodeId value) { add(rule.others, language, value); });
  for (const ObjectShape::Demand& demand : demanded) {
    std::vector<ObjectRule::Property> choices;
    find_other_names(node, shape, pool.both(others, demand.names),
                     [&](ExprId language, NodeId value) {
                       value = nodes_.both(value, demand.value);
                       if (value != kNoNode) add(choices, language, value);
                     });
    if (choices.empty()) return false;
    if (choices.size() > 1) refuse(place_of(node), "not", "of patternProperties that overlap");
    rule.demanded.push_back(choices[0]);
  }
  rule.finish();
  return true;
}

bool SchemaCompiler::make_array_rule(NodeId node, const ArrayShape& shape, ArrayRule& rule) {
  rule.min = shape.min;
  rule.max = shape.max;
  if (shape.unique && rule.max > 1) {
    make_unique_rule(node, shape, rule);
    return true;
  }
  // An array that is never longer than its first items needs no rest.
  const std::size_t first = std::min<std::size_t>(shape.first.size(), shape.max);
  for (std::size_t i = 0; i < first; ++i) rule.first.push_back(reach(shape.first[i]));
  rule.rest = shape.max > first ? reach(shape.rest) : kNoRule;
  if (shape.contains.empty()) return true;
  const SchemaId at = place_of(node);
  if (shape.contains.size() > 1) {
    if (shape.contains.size() > kMostContains) refuse(at, "contains", "too many at once");
    for (const ArrayShape::Contains& one : shape.contains)
      if (one.min != 1 || one.max != kUnbounded)
        refuse(at, "contains", "several at once, with minContains or maxContains");
    for (std::uint32_t set = 1; set < 1u << shape.contains.size(); ++set) {
      ArrayRule::Matching matching{.set = set};
      NodeId also = kAnyNode;
      for (std::size_t i = 0; i < shape.contains.size(); ++i)
        if ((set >> i & 1) != 0) also = nodes_.both(also, shape.contains[i].value);
      for (std::size_t i = 0; i < first; ++i)
        matching.first.push_back(reach(nodes_.both(shape.first[i], also)));
      if (shape.max > first) matching.rest = reach(nodes_.both(shape.rest, also));
      rule.sets.push_back(std::move(matching));
      rule.all_sets = set;
    }
    return true;
  }
  const ArrayShape::Contains& contains = shape.contains[0];
  rule.has_contains = true;
  rule.min_contains = contains.min;
  rule.max_contains = contains.max;
  const auto with = [&](NodeId item) { return reach(nodes_.both(item, contains.value)); };
  for (std::size_t i = 0; i < first; ++i) rule.first_matching.push_back(with(shape.first[i]));
  rule.rest_matching = shape.max > first ? with(shape.rest) : kNoRule;
  if (contains.max == kUnbounded) return true;
  // With a maximum, an item either counts or does not match.
  NodeId others = kAnyNode;
  const std::vector<Term> terms = nodes_.terms(contains.value);
  if (contains.value == kAnyNode) {
    others = kNoNode;
  } else if (contains.value != kNoNode) {
    if (terms.size() != 1)
      refuse(place_of(contains.value), "maxContains", "of several schemas at once");
    others = nodes_.of({terms[0].schema, !terms[0].negated});
  }
  for (std::size_t i = 0; i < first; ++i)
    rule.first[i] = reach(nodes_.both(shape.first[i], others));
  rule.rest = shape.max > first ? reach(nodes_.both(shape.rest, others)) : kNoRule;
  return true;
}

// Items that are all different, where there are few values to choose from.
void SchemaCompiler::make_unique_rule(NodeId node, const ArrayShape& shape, ArrayRule& rule) {
  const SchemaId at = place_of(node);
  if (!shape.first.empty() || !shape.contains.empty())
    refuse(at, "uniqueItems", "together with items that have schemas of their own");
  const ShapePointer item = node_shape(shape.rest);
  // Objects and arrays could be equal in many spellings.
  bool few = item->objects.empty() && item->arrays.empty();
  std::vector<LexemeId> values;
  if (item->null) values.push_back(literal("null"));
  if (item->no) values.push_back(literal("false"));
  if (item->yes) values.push_back(literal("true"));
  const auto add_all = [&](ExprId language, Lexeme::Kind kind) {
    std::vector<std::u32string> texts;
    if (!data_.pool.few_texts(language, kMostUniqueValues, &texts)) {
      few = false;
      return;
    }
    // Numbers may have two spellings; they count as one value.
    std::map<std::string, std::vector<ExprId>> by_value;
    for (const std::u32string& text : texts) {
      std::string key = to_utf8(text);
      if (kind == Lexeme::Kind::kJson)
        if (const auto number = parse_decimal(key)) key = number->text();
      by_value[key].push_back(data_.pool.literal(text));
    }
    for (auto& [key, spellings] : by_value)
      values.push_back(lexeme(kind, data_.pool.either(std::move(spellings))));
  };
  if (few) add_all(written_number(item->number), Lexeme::Kind::kJson);
  if (few) add_all(item->text, Lexeme::Kind::kJsonString);
  if (!few || values.size() > kMostUniqueValues)
    refuse(at, "uniqueItems", "only items with few possible values can be kept apart");
  rule.max = std::min(rule.max, static_cast<std::uint32_t>(values.size()));
  for (const LexemeId value : values) {
    rule.unique_values.push_back(static_cast<RuleId>(data_.values.size()));
    data_.values.push_back({.scalars = {value}, .objects = {}, .arrays = {}});
  }
}

}  // namespace hearth::grammar
